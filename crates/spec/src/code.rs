//! The closed table of finding codes. Names never change, because scripts, dashboards and suppressions depend on
//! them.

/// Errors reject the document; warnings ask for a review.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    Warning,
    Error,
}

macro_rules! codes {
    ($($variant:ident $name:literal $severity:ident $title:literal $explanation:literal;)*) => {
        /// Every code that a finding can carry. `toolgate explain CODE` prints its explanation.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum Code { $(#[doc = $title] $variant,)* }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)* }
            }
        }
    };
}

codes! {
    SpecParse "SPEC_PARSE" Error "the document cannot be read"
        "The text is not JSON or YAML, or it does not have the shape that the published schema gives it: a field has \
         the wrong type, a required field is missing, a closed block has an unknown key, a key is duplicated, the file \
         is not UTF-8, too large or too deeply nested.\n\nA file that cannot be parsed yields one finding, at the position \
         where reading stopped. A file that parses but does not fit the schema yields one finding for each violation.";
    SpecInvariant "SPEC_INVARIANT" Error "the document contradicts itself"
        "Each field is well-formed, but together they cannot be right: a required parameter without a test value, a \
         test value that does not parse into its type, a parameter name that is not an identifier or is duplicated, a \
         placeholder outside the grammar `${NAME}`, a malformed host, an unknown helper version, both `code` and \
         `handler`, a template with an unknown parameter.";
    ResolverReject "RESOLVER_REJECT" Error "the policy cannot be resolved"
        "The document is valid, but baseline, profile chain and overrides do not combine into one policy: the same \
         class is allowed and denied, a profile is unknown, extends itself or is nested too deeply, or two blocks of \
         the document ask for different things. A tool that cannot be resolved is never run.";
    LocalPassFailed "LOCAL_PASS_FAILED" Error "the test run failed"
        "The tool was run with its test values, in the sandbox that serves it, and failed. It stays unpublished. The \
         finding names the stage that stopped it and the policy that was active.";
    ReservedName "RESERVED_NAME" Error "the name belongs to a shipped tool"
        "A shipped tool has this name, or one that looks the same, and the document is another tool. Callers could not \
         tell them apart. Rename the tool. To use the shipped tool, add its name to `catalog.include.names` in \
         `toolgate.yaml`.";
    LintSecretText "LINT_SECRET_TEXT" Warning "text that looks like a secret"
        "A description, static literal, test value, argument or header looks like a credential. Documents are shared, \
         logged and shown to models. Keep the value in the environment and refer to it from a static variable: \
         `{\"apiKey\": \"${MY_API_KEY}\"}`. Only values that come through a placeholder are masked in output.";
    LintPoisonInstruction "LINT_POISON_INSTRUCTION" Warning "text that gives the model orders"
        "The text tells a model what to do instead of saying what the tool does: to ignore earlier instructions, to \
         hide something from the user, to always call this tool first. Descriptions are read by models as \
         instructions, which is how a poisoned tool takes over a conversation. Say what the tool does and returns, \
         and nothing else.";
    LintPoisonMarkup "LINT_POISON_MARKUP" Warning "chat markup inside text"
        "The text contains markers that chat templates use to separate system, user and assistant turns, such as \
         `<|im_start|>`, `[INST]` or `<system>`. Some clients pass them through, and the rest of the text then appears \
         to come from another role. Remove the markers.";
    LintPoisonRole "LINT_POISON_ROLE" Warning "text that changes who the model is"
        "The text assigns the model a role or a mode (\"you are now\", \"act as\", \"developer mode\"). A tool \
         description must not do that. Remove it.";
    LintPoisonZeroWidth "LINT_POISON_ZERO_WIDTH" Warning "invisible characters"
        "The text contains characters that have no width or are never displayed: zero-width spaces and joiners, word \
         joiners, soft hyphens, Unicode tag characters, variation selectors out of place. People cannot see them; \
         models read them. Remove them.";
    LintPoisonBidi "LINT_POISON_BIDI" Warning "bidirectional control characters"
        "The text contains characters that reorder what is displayed, so a reviewer reads something other than \
         the model (CVE-2021-42574). Remove them.";
    LintPoisonLookalike "LINT_POISON_LOOKALIKE" Warning "look-alike letters"
        "A word mixes letters of different scripts that look the same, such as Cyrillic `а` in a Latin word, or a \
         name uses full-width or mathematical letters. Such words pass review and exact-match filters as something \
         they are not. Write each word in one script.";
    LintPoisonControl "LINT_POISON_CONTROL" Warning "control characters or terminal escapes"
        "The text contains ANSI escape sequences or other control characters. In a terminal they can hide or \
         overwrite the text around them. Remove them.";
    LintPoisonExfiltration "LINT_POISON_EXFILTRATION" Warning "text that asks for data to be sent somewhere"
        "The text combines a verb of sending with an address, a URL or the conversation itself. A description says \
         what a tool returns; it does not ask the model to send things. Remove the request. If someone else wrote \
         it, do not trust the tool.";
    LintPoisonCrossTool "LINT_POISON_CROSS_TOOL" Warning "text that steers other tools"
        "The text tells the model when or how to use other tools (\"before any other tool\", \"instead of the mail \
         tool\"). That is how one tool shadows another. Describe this tool only.";
    LintTestValue "LINT_TEST_VALUE" Warning "test value that tests nothing"
        "The test value is a filler such as `test`, `xxx` or `TODO`. The Local Pass runs the tool with exactly \
         these values; with a filler, nothing real is tested. Write a value that a real call would have.";
    LintWildcardHost "LINT_WILDCARD_HOST" Warning "hosts wider than they need to be"
        "`*` allows every public host and raises the risk to L4; `*.com` and similar patterns are hardly narrower; `open` \
         reaches private networks too. Name the hosts that the tool talks to.";
    LintHostsUnused "LINT_HOSTS_UNUSED" Warning "hosts without effect"
        "`hostsAllow` has no effect without `networkMode: allowlist`, and an allow list without hosts reaches nothing. The \
         document probably means something else than it says. Make mode and hosts agree.";
    LintBroadPath "LINT_BROAD_PATH" Warning "paths wider than they need to be"
        "The path is a file system root, a home directory or a system directory. Grant the directory that the tool works \
         in, preferably below `$WORKSPACE`.";
    LintUnconfined "LINT_UNCONFINED" Warning "less isolation than the default"
        "The document requests less isolation: `sandbox: none`, the gateway's environment, private networks or metadata \
         endpoints not blocked, output not redacted. Each raises the risk and is marked in the journal. Leave the \
         default unless the tool cannot work with it.";
    LintReturnShape "LINT_RETURN_SHAPE" Warning "the description does not say what comes back"
        "Models choose and chain tools by what they return. End the description with a sketch of the result, such as \
         `Returns {city, temperatureC}`, or declare an output schema.";
    LintDescription "LINT_DESCRIPTION" Warning "no description, or a very short or very long one"
        "Models choose the tool by its description, and people review it. One or two sentences: what it \
         does, what it needs, what comes back.";
    LintLocale "LINT_LOCALE" Warning "identifier outside ASCII English"
        "Names, keys, tags, categories and identifier-like values must be ASCII, because not every client and log supports other \
         characters. Test values may be in any language; a description is English prose that may quote other scripts.";
    LintUnknownField "LINT_UNKNOWN_FIELD" Warning "unknown field that looks like a known one"
        "Unknown top-level fields are kept, but this one is a letter or two away from a field that means something. \
         If it is a vendor field, begin it with `x-`.";
    LintShadowedParam "LINT_SHADOWED_PARAM" Warning "static variable hides a parameter"
        "A static variable has the name of a parameter. The static value wins, so the caller's value is ignored. \
         Rename one of the two.";
    LintHelperUndeclared "LINT_HELPER_UNDECLARED" Warning "helper used but not declared"
        "The code uses a helper that `toolSafety.runtime.helpers` does not list, or lists one it never uses. The list \
         says which helper versions the code was written against. `toolgate resolve --write-safety` writes the list \
         that fits.";
    LintHelperNotGranted "LINT_HELPER_NOT_GRANTED" Warning "helper used but not granted"
        "The code calls `fetch` or `safety.fs`, but the document does not request the network or files. Helpers \
         that are not granted do not exist at run time, so the call would fail. Set `networkMode`, `fileRead` or \
         `fileWrite` in `sandboxOverrides`, or remove the call.";
    LintSafetyMismatch "LINT_SAFETY_MISMATCH" Warning "toolSafety differs from the resolved policy"
        "`toolSafety` is a record by an earlier writer of the document. It is never trusted: the policy was \
         resolved again from `sandboxOverrides`, and the two differ. The resolved policy is enforced. Remove \
         the block, or update it with `toolgate resolve --write-safety`.";
    LintApprovalDisabled "LINT_APPROVAL_DISABLED" Warning "approval is switched off for a risky tool, or the switch has no effect"
        "`humanInTheLoop: DISABLED` switches off the approval that the gateway would require by risk. From L3 on the tool \
         reaches hosts, files or programs, and its calls run without review. Remove `humanInTheLoop` to let the \
         gateway decide by `approvals.ask_from`, or set `REQUIRED`. The finding also appears at any level if another \
         setting, such as `classification: write`, requires approval in spite of `DISABLED`.";
    LintNumberPrecision "LINT_NUMBER_PRECISION" Warning "number that JSON readers round"
        "Integers beyond 2^53 are rounded by most JSON readers and by the canonical form that the digest is taken \
         of. Write the number as a string.";
    LintPatternUntried "LINT_PATTERN_UNTRIED" Warning "danger pattern without examples"
        "A misspelt danger pattern never matches, which is noticed only when it is too late. Write it with at \
         least one text that it must match and one that it must not match: \
         `{pattern: 'rm\\s+-r', hits: [rm -r build], misses: [rm notes.txt]}`. They are tested whenever the document is \
         loaded.";
    LintArgumentUntried "LINT_ARGUMENT_UNTRIED" Warning "rule for an argument of a command without examples"
        "A `pattern` decides what a caller can pass to a command. If it accepts more than its author thinks, attackers \
         find out first. For `cli.args` a rule without examples is an error. Add at least one value that it must accept and one \
         that it must reject: `{type: string, pattern: '^[a-z]+$', examples: [main], x-misses: ['-p']}`. They are tested \
         whenever the document is loaded, and not shown to clients.";
}

impl Code {
    /// Looks up a code by its stable name, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name().eq_ignore_ascii_case(name))
    }

    /// Whether findings of this code can block publishing. `Finding::blocks_publishing` says whether one does.
    pub fn may_block_publishing(self) -> bool {
        self == Self::LintSecretText || self.name().starts_with("LINT_POISON_")
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Severity};

    #[test]
    fn names_are_unique_and_say_their_severity() {
        for code in Code::ALL {
            assert_eq!(Code::from_name(code.name()), Some(*code), "{}", code.name());
            assert_eq!(
                code.name().starts_with("LINT_"),
                code.severity() == Severity::Warning,
                "{}",
                code.name()
            );
            assert!(code.explanation().len() > 80, "{} explains itself", code.name());
        }
    }
}
