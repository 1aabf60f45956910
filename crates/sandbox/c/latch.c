/* The latch: first program of a container whose runtime cannot create it without starting it. It reports what it sees at the given
   paths, waits for a go-ahead, and executes the command. It uses no C library, because it runs in images that have none.

     latch COUNT PATH... PROGRAM ARGUMENT...

   The first letter of a PATH says how to resolve it: `l` follows symlinks, `n` allows none. For each path it writes device and inode to
   standard output as two machine words, or zeroes if there is no file. It writes nothing if the program cannot be executed. The byte `g`
   on standard input is the go-ahead. The other side is `src/container/latch.rs`. */

typedef unsigned long word;

#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, CLOSE = 3, FSTAT = 5, EXECVE = 59, EXIT_GROUP = 231, FACCESSAT = 269, OPENAT2 = 437, O_DIRECTORY = 0200000 };

static long call(long number, const void *a, const void *b, const void *c, const void *d) {
  register const void *fourth __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return result;
}

__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call latch\n  hlt\n");
#elif defined(__aarch64__)
enum { READ = 63, WRITE = 64, CLOSE = 57, FSTAT = 80, EXECVE = 221, EXIT_GROUP = 94, FACCESSAT = 48, OPENAT2 = 437, O_DIRECTORY = 040000 };

static long call(long number, const void *a, const void *b, const void *c, const void *d) {
  register long wanted __asm__("x8") = number;
  register const void *first __asm__("x0") = a;
  register const void *second __asm__("x1") = b;
  register const void *third __asm__("x2") = c;
  register const void *fourth __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(first) : "r"(wanted), "r"(second), "r"(third), "r"(fourth) : "memory");
  return (long)first;
}

__asm__(".globl _start\n_start:\n  mov x29, #0\n  mov x0, sp\n  bl latch\n  brk #0\n");
#else
#error "the latch is written for x86_64 and aarch64"
#endif

enum { O_CLOEXEC = 02000000, O_PATH = 010000000, RESOLVE_NO_SYMLINKS = 4, X_OK = 1, LONGEST_PATH = 4096, INTERRUPTED = -4 };
enum { GO = 'g', BAD_USAGE = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

/* AT_FDCWD: relative paths start in the working directory. */
#define HERE ((void *)-100L)
#define NUMBER(value) ((void *)(long)(value))

static void leave(int code) {
  for (;;) call(EXIT_GROUP, NUMBER(code), 0, 0, 0);
}

static word length(const char *text) {
  word count = 0;
  while (text[count]) count++;
  return count;
}

static void print_error(const char *text) { call(WRITE, NUMBER(2), text, (void *)length(text), 0); }

static void fail(const char *about, const char *why, int code) {
  print_error("`");
  print_error(about);
  print_error("` ");
  print_error(why);
  print_error("\n");
  leave(code);
}

/* Returns -1 if the path does not exist. */
static long open_path(const char *path, word flags, word resolve) {
  const word how[3] = {O_PATH | O_CLOEXEC | flags, 0, resolve};
  long opened = call(OPENAT2, HERE, path, how, (void *)sizeof how);
  return opened < 0 ? -1 : opened;
}

/* `struct stat` begins with device and inode on both architectures. */
static void report_file(const char *path) {
  word stat[32];
  long opened = open_path(path + 1, 0, path[0] == 'n' ? RESOLVE_NO_SYMLINKS : 0);
  stat[0] = stat[1] = 0;
  if (opened >= 0) {
    if (call(FSTAT, NUMBER(opened), stat, 0, 0) != 0) stat[0] = stat[1] = 0;
    call(CLOSE, NUMBER(opened), 0, 0, 0);
  }
  if (call(WRITE, NUMBER(1), stat, (void *)(2 * sizeof(word)), 0) != 2 * sizeof(word)) leave(BAD_USAGE);
}

static int is_program(const char *path) {
  if (call(FACCESSAT, HERE, path, NUMBER(X_OK), 0) != 0) return 0;
  long dir = open_path(path, O_DIRECTORY, 0);
  if (dir >= 0) call(CLOSE, NUMBER(dir), 0, 0, 0);
  return dir < 0;
}

static const char *search_path(char **variables) {
  for (; *variables; variables++) {
    const char *one = *variables;
    if (one[0] == 'P' && one[1] == 'A' && one[2] == 'T' && one[3] == 'H' && one[4] == '=') return one + 5;
  }
  return "";
}

/* Like the runtimes: searches a name without a slash in the absolute directories of PATH. */
static const char *find(const char *name, char **variables) {
  static char path[LONGEST_PATH];
  const char *dir = search_path(variables);
  word name_length = length(name);
  for (const char *letter = name; *letter; letter++)
    if (*letter == '/') return is_program(name) ? name : 0;
  if (!name_length) return 0;
  while (*dir) {
    word size = 0;
    while (dir[size] && dir[size] != ':') size++;
    if (dir[0] == '/' && size + name_length + 2 <= LONGEST_PATH) {
      word end = 0;
      while (end < size) {
        path[end] = dir[end];
        end++;
      }
      path[end++] = '/';
      for (word index = 0; index <= name_length; index++) path[end + index] = name[index];
      if (is_program(path)) return path;
    }
    dir += dir[size] ? size + 1 : size;
  }
  return 0;
}

static long number(const char *text) {
  long value = 0;
  if (!*text) return -1;
  for (; *text; text++) {
    if (*text < '0' || *text > '9' || value > 1000000) return -1;
    value = value * 10 + (*text - '0');
  }
  return value;
}

/* Stack of a new program: argument count, arguments, null, environment variables, null. */
__attribute__((used, noreturn)) void latch(word *stack) {
  long count = (long)stack[0];
  char **arguments = (char **)(stack + 1), **variables = arguments + count + 1;
  long paths = count < 3 ? -1 : number(arguments[1]);
  if (paths < 0 || paths > count - 3) fail("latch", "was called with invalid arguments", BAD_USAGE);
  char **command = arguments + 2 + paths;
  const char *program = find(command[0], variables);
  if (!program) fail(command[0], "is not an executable program in the image", NOT_FOUND);
  for (long index = 0; index < paths; index++) report_file(arguments[2 + index]);
  char go = 0;
  long got;
  do got = call(READ, NUMBER(0), &go, NUMBER(1), 0);
  while (got == INTERRUPTED);
  if (got != 1 || go != GO) leave(BAD_USAGE);
  call(EXECVE, program, command, variables, 0);
  fail(command[0], "cannot be executed in the image", NOT_EXECUTABLE);
  __builtin_unreachable();
}
