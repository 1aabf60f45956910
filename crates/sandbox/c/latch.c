/* The first program of a container whose runtime makes nothing without starting it. It says what it sees at the places that it is told
   of, waits until it is let go, and becomes the command. It has no C library, for it runs in images that have none.

     latch COUNT PLACE... PROGRAM ARGUMENT...

   A place begins with `l` where links in it lead on, and with `n` where there must be none. For each place, device and number of what is
   there are written to the standard output as two machine words, zeroes where nothing is seen. Nothing is written when the program is not
   there to be run. One byte on the standard input, `g`, lets it go. The other side is `src/container/latch.rs`. */

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
enum { GO = 'g', BADLY_CALLED = 125, NOT_RUNNABLE = 126, NOT_FOUND = 127 };

/* The folder that relative paths begin in. */
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

static void complain(const char *text) { call(WRITE, NUMBER(2), text, (void *)length(text), 0); }

static void give_up(const char *about, const char *why, int code) {
  complain("`");
  complain(about);
  complain("` ");
  complain(why);
  complain("\n");
  leave(code);
}

/* -1 where there is no such thing. */
static long open_place(const char *path, word flags, word resolve) {
  const word how[3] = {O_PATH | O_CLOEXEC | flags, 0, resolve};
  long opened = call(OPENAT2, HERE, path, how, (void *)sizeof how);
  return opened < 0 ? -1 : opened;
}

/* The kernel's account of a file begins with its device and its number on both machines. */
static void tell_place(const char *place) {
  word account[32];
  long opened = open_place(place + 1, 0, place[0] == 'n' ? RESOLVE_NO_SYMLINKS : 0);
  account[0] = account[1] = 0;
  if (opened >= 0) {
    if (call(FSTAT, NUMBER(opened), account, 0, 0) != 0) account[0] = account[1] = 0;
    call(CLOSE, NUMBER(opened), 0, 0, 0);
  }
  if (call(WRITE, NUMBER(1), account, (void *)(2 * sizeof(word)), 0) != 2 * sizeof(word)) leave(BADLY_CALLED);
}

static int is_program(const char *path) {
  if (call(FACCESSAT, HERE, path, NUMBER(X_OK), 0) != 0) return 0;
  long folder = open_place(path, O_DIRECTORY, 0);
  if (folder >= 0) call(CLOSE, NUMBER(folder), 0, 0, 0);
  return folder < 0;
}

static const char *search_path(char **variables) {
  for (; *variables; variables++) {
    const char *one = *variables;
    if (one[0] == 'P' && one[1] == 'A' && one[2] == 'T' && one[3] == 'H' && one[4] == '=') return one + 5;
  }
  return "";
}

/* As the runtimes look for it: a name without a slash in the folders of PATH, of which only absolute ones count. */
static const char *find(const char *name, char **variables) {
  static char path[LONGEST_PATH];
  const char *folder = search_path(variables);
  word name_length = length(name);
  for (const char *letter = name; *letter; letter++)
    if (*letter == '/') return is_program(name) ? name : 0;
  if (!name_length) return 0;
  while (*folder) {
    word size = 0;
    while (folder[size] && folder[size] != ':') size++;
    if (folder[0] == '/' && size + name_length + 2 <= LONGEST_PATH) {
      word end = 0;
      while (end < size) {
        path[end] = folder[end];
        end++;
      }
      path[end++] = '/';
      for (word index = 0; index <= name_length; index++) path[end + index] = name[index];
      if (is_program(path)) return path;
    }
    folder += folder[size] ? size + 1 : size;
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

/* What the kernel leaves on the stack of a new program: the count of its words, the words, a null, the variables, a null. */
__attribute__((used, noreturn)) void latch(word *stack) {
  long count = (long)stack[0];
  char **words = (char **)(stack + 1), **variables = words + count + 1;
  long places = count < 3 ? -1 : number(words[1]);
  if (places < 0 || places > count - 3) give_up("latch", "is called wrongly", BADLY_CALLED);
  char **command = words + 2 + places;
  const char *program = find(command[0], variables);
  if (!program) give_up(command[0], "is no program that can be run in the image", NOT_FOUND);
  for (long index = 0; index < places; index++) tell_place(words[2 + index]);
  char go = 0;
  long got;
  do got = call(READ, NUMBER(0), &go, NUMBER(1), 0);
  while (got == INTERRUPTED);
  if (got != 1 || go != GO) leave(BADLY_CALLED);
  call(EXECVE, program, command, variables, 0);
  give_up(command[0], "cannot be run in the image", NOT_RUNNABLE);
  __builtin_unreachable();
}
