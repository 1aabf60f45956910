//! The phrases: one row each. A pattern is tried only on texts that contain one of its needles.
//!
//! Patterns ask for the imperative ("send"), not for what a tool does ("sends"), and for an order together with
//! its object, because either alone is found in honest descriptions. `crates/spec/tests/poison` measures both.

use crate::Code;

#[derive(Debug)]
pub(super) struct Phrase {
    pub code: Code,
    pub why: &'static str,
    pub place: In,
    /// Separated by spaces; one of them is in every text that the pattern matches.
    pub needles: &'static str,
    pub pattern: &'static str,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum In {
    /// The words alone, where punctuation cannot come between them.
    Words,
    /// The text with its punctuation.
    Flat,
}

const fn words(code: Code, why: &'static str, needles: &'static str, pattern: &'static str) -> Phrase {
    Phrase { code, why, place: In::Words, needles, pattern }
}

const fn flat(code: Code, why: &'static str, needles: &'static str, pattern: &'static str) -> Phrase {
    Phrase { code, why, place: In::Flat, needles, pattern }
}

use Code::{
    LintPoisonCrossTool as CrossTool, LintPoisonExfiltration as Exfiltration,
    LintPoisonInstruction as Instruction, LintPoisonMarkup as Markup, LintPoisonRole as Role,
};

pub(super) const PHRASES: &[Phrase] = &[
    words(
        Instruction,
        "sets earlier instructions aside",
        "ignor disregard forget overrid overrul bypass neglect circumvent",
        "(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|ing)|overrule|bypass(?:ing)?|neglect|circumvent)@4 (?:previous|previously|prior|above|earlier|preceding|foregoing|former|system|original|existing|initial|your|all other|any other|safety|developer|security)@3 (?:instructions?|prompts?|directives?|guidelines?|rules?|commands?|constraints?|restrictions?|guardrails?|polic(?:y|ies)|training|safeguards?|guidance|orders?|safety|checks?|filters?|warnings?)",
    ),
    words(
        Instruction,
        "sets earlier instructions aside",
        "drop discard skip abandon erase delete",
        "(?:drop|discard|skip|abandon|erase|delete)@3 (?:previous|prior|above|earlier|preceding|system|original|your|safety)@3 (?:instructions?|prompts?|directives?|guidelines?|guardrails?|safeguards?|training|constraints?)",
    ),
    words(
        Instruction,
        "sets earlier instructions aside",
        "forget ignore disregard",
        "(?:forget|ignore|disregard)@2 (?:everything|anything|whatever|all|what)@3 (?:you were|you have been|youve been|you know|you learned|told|was said|we said|we discussed|said so far|this point|has been said|above this|i said)",
    ),
    words(
        Instruction,
        "sets earlier instructions aside",
        "instructions rules guidelines prompt",
        "(?:(?:previous|prior|above|earlier|system|original|all|your|other|existing) )+(?:instructions|rules|guidelines|prompts?|directives|restrictions)@3 (?:no longer|do not apply|dont apply|are void|are cancelled|are canceled|are obsolete|are superseded|are overridden|null and void|invalid|are suspended|are lifted|not apply)",
    ),
    words(
        Instruction,
        "gives new instructions",
        "new following real actual updated secret hidden special additional true",
        "(?:(?:your|these are|here are|the) (?:new|real|actual|updated|secret|hidden|special|true)|follow@2 (?:new|hidden|secret|following|additional)) (?:instructions?|orders|directives?|rules)@1",
    ),
    flat(
        Instruction,
        "gives new instructions",
        "new updated hidden secret system",
        r"\b(?:new|updated|hidden|secret|system|admin) (?:instructions?|orders?|directive|override) ?[:>]",
    ),
    words(
        Instruction,
        "hides something from the user",
        "tell telling mention reveal inform disclose show alert notify say explain let",
        "(?:do not|dont|never|must not|mustnt|should not|shouldnt|cannot|avoid|refrain from|no need to|without)@2 (?:tell|telling|mention|mentioning|reveal|revealing|inform|informing|disclose|disclosing|show|showing|alert|alerting|notify|say|explain|let)@6 (?:(?:the|to|your|this) )+(?:users?|humans?|customer|operator|person|owner|administrator)",
    ),
    words(
        Instruction,
        "hides something from the user",
        "hidden hide secret conceal invisible confidential keep kept",
        "(?:hidden|hide|secret|conceal|concealed|invisible|confidential|keep|kept)@5 from (?:the )?(?:users?|humans?|customer|operator|people|everyone|anyone)",
    ),
    words(
        Instruction,
        "hides something from the user",
        "user users human",
        "(?:the )?(?:users?|humans?) (?:must|should|does|do|will|shall|need|needs|may|can)(?: not|nt)?@1 (?:never )?(?:know|notice|be told|be informed|be aware|see this|find out|be notified|learn)@2",
    ),
    words(
        Instruction,
        "hides something from the user",
        "silently secretly covertly quietly discreetly stealthily background",
        "(?:silently|secretly|covertly|quietly|discreetly|stealthily)@2 (?:call|read|send|run|execute|include|add|append|invoke|copy|forward|upload|open|collect|store|do this|pass|fetch|use|post)",
    ),
    words(
        Instruction,
        "hides something from the user",
        "mention reveal disclose acknowledge tell telling speak",
        "(?:do not|dont|never|without) (?:ever )?(?:mention|mentioning|reveal|revealing|disclose|disclosing|acknowledge|acknowledging|telling|tell|speak of) (?:this|that you|these|anyone|anybody|it to|having|the existence|doing|any of this|them)@1",
    ),
    words(
        Instruction,
        "demands to be called",
        "call use invoke run execute calling using invoking",
        "(?:always|must|should|shall|have to|need to|required to|make sure to|be sure to|remember to|is mandatory to|it is essential to|you will)@4 (?:call|use|invoke|run|execute|prefer|choose|select|consult)@1 (?:this|it|me)(?: tool| function)?@5 (?:first|before|instead|every|each|beginning|start|regardless|no matter|prior|exclusively|over any|whatever|automatically|again)",
    ),
    words(
        Instruction,
        "demands to be called",
        "call use invoke run execute calling",
        "(?:call|use|invoke|run|execute|calling) (?:this|it|me)(?: tool| function)?@3 (?:before|prior to|at the start of|at the beginning of|with|after|on) (?:you )?(?:do anything|doing anything|anything|answering|answer|responding|respond|replying|every|each|any response|any action|any request|any other action|all requests)",
    ),
    words(
        Instruction,
        "demands to be called",
        "must",
        "(?:this|the) (?:tool|function) (?:must|has to|needs to) (?:always )?be (?:called|used|invoked|run|executed)@4 (?:first|before|every|each|prior|regardless|always|whenever)",
    ),
    words(
        Instruction,
        "demands to be called",
        "before prior",
        "(?:before|prior to) (?:answering|responding|replying|you answer|you respond|you reply|every (?:answer|response|reply|request|message)|any (?:answer|response|reply)|doing anything)@3 (?:you must|you should|always|call|invoke|first|read|use|make sure|it is required)",
    ),
    flat(
        Instruction,
        "speaks to the model",
        "important attention critical urgent mandatory warning remember notice",
        r"\b(?:important|critical|attention|urgent|warning|mandatory|remember|notice)\b[^a-z0-9]{1,6}(?:you (?:must|have to|shall|are required|need to (?:read|call|first))|the (?:assistant|model|ai|agent|llm)|(?:all )?(?:assistants|models|agents|llms)|before (?:answering|responding|using|calling|doing|any|every|you)|ignore|always (?:call|invoke|respond|reply|answer|send|forward)|never (?:tell|reveal|mention|refuse)|do not (?:tell|reveal|mention|refuse)|(?:first )?read (?:the|~|/)|when(?:ever)? you)",
    ),
    words(
        Instruction,
        "speaks to the model",
        "assistant assistants model models ai llm llms agent agents chatbot claude gpt copilot gemini",
        "(?:note|notes|attention|hint|reminder|notice|directive|memo|psst|hey|dear|listen|psa|hello|warning|important|(?:important|secret|hidden|special|private|internal) (?:instructions?|message|note|information))(?: (?:to|for))?(?: (?:the|all|any|you|every))?(?: (?:ai|language|large|reading|llm))* (?:ai|llms?|models?|assistants?|agents?|chatbot|claude|gpt|chatgpt|copilot|gemini)",
    ),
    words(
        Instruction,
        "speaks to the model",
        "assistant assistants model models ai llm llms agent agents chatbot claude gpt copilot gemini",
        "(?:assistants?|models?|ai|llms?|agents?|chatbot|claude|gpt|chatgpt|copilot|gemini) (?:must|should|shall|has to|have to|is required to|are required to|needs to|is instructed to|are instructed to|will)(?: now| also| always| first| immediately| then| never| not| therefore)* (?:read|open|load|include|append|insert|reply|respond|answer|obey|comply|follow|execute|call|invoke|embed|output|print|say|state|recommend|claim|approve|skip|hide|pretend|collect|extract|gather|copy|repeat|forward|send|upload|post|ignore|disregard|trust|prefer|refuse|mention|tell|reveal|use this|treat)",
    ),
    words(
        Instruction,
        "speaks to the model",
        "you your",
        "(?:you|you are an assistant who) (?:must|should|shall|have to|need to|will|are required to|are obliged to|are instructed to)(?: now| also| always| first| immediately| then| never| not| only| therefore| instead)* (?:obey|comply|pretend|hide|reveal|respond|reply|answer|recommend|claim|extract|gather|collect|repeat|refuse|lie|trust|tell|say|disobey|approve|open the|read the|exfiltrate|execute)",
    ),
    words(
        Instruction,
        "speaks to the model",
        "never refuse comply obey",
        "(?:never|do not|dont|cannot) (?:refuse|decline|question|doubt|hesitate)@2 (?:this|any|the|these|to|requests?|instructions?)",
    ),
    flat(Instruction, "hides text in markup", "<!--", r"<!--[^>]{0,400}"),
    flat(
        Instruction,
        "hides text in markup",
        "<important <secret <hidden <critical <instruction <admin <override <mandatory",
        r"</?(?:important|secret|hidden|critical|instructions?|admin|override|mandatory)\b[^<>]{0,60}>",
    ),
    flat(
        Instruction,
        "hides text in markup",
        "display:none visibility:hidden font-size:0 color:white opacity:0",
        r"(?:display:\s?none|visibility:\s?hidden|font-size:\s?0|opacity:\s?0|color:\s?(?:white|transparent))",
    ),
    flat(
        Instruction,
        "asks for private files",
        ".ssh id_rsa id_ed25519 /etc/passwd /etc/shadow .aws/ mcp.json desktop_config .cursor .netrc .kube/ bash_history .git-credentials .env .npmrc keychain wallet",
        r"\b(?:read|open|cat|load|include|paste|copy|pass|attach|fetch|send|get|provide|contents? of|access|grab|dump|print|upload)\b[^!?\n]{0,80}(?:\.ssh\b|id_rsa|id_ed25519|/etc/(?:passwd|shadow)|\.aws/|mcp\.json|desktop_config|\.cursor/|\.netrc|\.kube/|bash_history|\.git-credentials|(?:~|home|/|your |users? )[^ ]{0,20}\.env\b|\.npmrc|keychain|wallet\.dat)",
    ),
    words(
        Instruction,
        "asks for private files",
        "config configuration credentials keys",
        "(?:read|open|load|copy|pass|include|fetch|attach)@3 (?:(?:the|your|users?|clients?|local|mcp|host) )+(?:mcp|client|assistant|agent|cursor|claude|ssh|editor) (?:config|configuration|settings|keys?|credentials)",
    ),
    flat(
        Instruction,
        "sets earlier instructions aside, without spaces",
        "ignorea ignoret ignorep ignorey ignoreprevious disregard forgetall forgetprev donottell dontinform youarenow",
        r"(?:ignore|disregard|forget)(?:all|any|the|your|of)*(?:previous|prior|above|earlier|system)(?:instructions?|rules?|prompts?|directives?|guidelines?)|donottelltheuser|youarenow(?:an?|the|in|dan)",
    ),
    // The same order in other languages; one of them is enough to be understood by a model.
    flat(
        Instruction,
        "sets earlier instructions aside",
        "ignor instru istruz anweis consignes vergiss olvida oublie",
        r"\b(?:ignorier\w*|vergiss|missachte)\b[^.!?]{0,40}(?:anweisung|instruktion|befehl|regeln)|\b(?:ignora|ignore|olvida|omite)\w*\b[^.!?]{0,40}\b(?:instrucciones|instrucoes|reglas anteriores|istruzioni|instructions precedentes|consignes)|\b(?:ignorez|oubliez|oublie|ne tenez pas compte)\b[^.!?]{0,40}(?:instructions|consignes|regles)",
    ),
    flat(
        Instruction,
        "sets earlier instructions aside",
        "игнорир забудь 忽略 无视 無視 忘れ 무시 잊어 تجاهل התעלם bo\u{11f} 告诉 告訴 알리지 말하지 ユーザー сообщай говори yoksay iptal 別 perintah abaikan",
        r"(?:игнорир|забудь)[^.!?]{0,40}(?:инструкц|указани|команд|правил)|(?:не сообщай|не говори)[^.!?]{0,30}пользовател|(?:忽略|无视|無視)[^。]{0,12}(?:指令|指示|说明|說明|提示|規則|规则)|(?:指示|命令|プロンプト|ルール)[^。]{0,8}(?:無視|忘れ)|(?:지시|명령|지침|프롬프트|규칙)[^.]{0,12}(?:무시|잊어)|تجاهل[^.]{0,30}(?:التعليمات|الأوامر)|התעלם[^.]{0,30}(?:הוראות|ההוראות)|不要(?:告诉|告訴)(?:用户|用戶|使用者)|사용자에게[^.]{0,12}(?:알리지|말하지)|ユーザーに[^。]{0,12}(?:言わない|知らせない|伝えない|教えない)|abaikan[^.]{0,30}(?:perintah|instruksi)",
    ),
    flat(Markup, "chat template marker", "<| |>", r"<\|[a-z0-9_ ]{2,30}\|>"),
    flat(
        Markup,
        "chat template marker",
        "[inst [/inst <<sys <</sys <start_of_turn> <end_of_turn> <bos> <eos>",
        r"\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|<(?:bos|eos)>",
    ),
    flat(
        Markup,
        "tag of a conversation",
        "<system </system <assistant </assistant </user> </human> <tool_call <tool_result <function_call <developer antml </prompt> <prompt>",
        r"</?(?:system|assistant|developer|tool_calls?|tool_results?|function_calls?|antml)[^<>]{0,60}>|</(?:user|human|prompt)>",
    ),
    flat(
        Markup,
        "heading of a conversation",
        "###",
        r"#{2,6} ?(?:instructions?|system|response|human|assistant|new task|user)\b ?(?::|\n|prompt|message|$)",
    ),
    flat(
        Markup,
        "turn of a conversation",
        "system: assistant: human: user: ai:",
        r"(?:^|\n) ?(?:assistant|human) ?:|\n ?(?:system|ai) ?:|\n ?user ?:[^\n]{0,400}\n ?assistant ?:",
    ),
    flat(
        Markup,
        "turn of a conversation",
        "[system system] begin {\"role\" end",
        r"\[/?system(?: (?:message|note|prompt|override|instructions?|update))?\]|(?:-{3,}|={3,}|\*{3,}) ?(?:begin|end|start)(?: of)?(?: new| hidden)? (?:system|instructions?|prompt|conversation|user|admin)",
    ),
    words(
        Role,
        "assigns a role",
        "you",
        "you are (?:now|no longer|hereby|from now on|actually|henceforth)(?: [^ .]+)?",
    ),
    words(
        Role,
        "assigns a role",
        "now henceforth",
        "(?:from now on|henceforth|from this point(?: on| forward)?)@1 (?:you|act|respond|behave|answer|reply|treat|always|every|all|your|the assistant|ignore|call|speak)",
    ),
    words(
        Role,
        "assigns a role",
        "act behave roleplay role-play pretend impersonate respond",
        r"(?:(?:^|(?:\.|now|please|must|should|will|shall|and|then|you) )(?:act|behave|respond|answer) as (?:a|an|the|if|my|root|admin|administrator|system|though|dan)|(?:pretend|imagine|act as if)@1 (?:to be|you are|you have|youre|that you|there are no)|(?:roleplay|role play) as|act as an? (?:unrestricted|uncensored|unfiltered|evil|different|new))@1",
    ),
    words(
        Role,
        "assigns a role",
        "persona identity personality role",
        "(?:assume|adopt|take on|switch to|enter|play)@1 (?:the|a|this|your new) (?:role|persona|identity|personality|character)@1",
    ),
    words(
        Role,
        "assigns a role",
        "your",
        "your (?:new|only|primary|real|true|sole|actual|main|secret)@1 (?:goal|task|job|purpose|objective|role|identity|mission|loyalty|duty|name is|master|persona|priority)",
    ),
    words(
        Role,
        "switches a mode",
        "mode",
        "(?:enter|enable|activate|switch to|switch into|turn on|unlock|you are in|now in|engage|start)@2 (?:developer|god|debug|dan|admin|sudo|maintenance|jailbreak|root|unrestricted|unsafe|uncensored|privileged|compliance) mode",
    ),
    words(
        Role,
        "switches a mode",
        "mode",
        "(?:developer|god|dan|sudo|jailbreak|unrestricted|uncensored|admin) mode (?:is )?(?:enabled|activated|on|unlocked|engaged|now|active)",
    ),
    words(
        Role,
        "lifts the model's limits",
        "jailbr anything unrestricted uncensored unfiltered restrictions limitations guardrails filters",
        "(?:jailbreak yourself|jailbroken|you are jailbroken|do anything now|unrestricted (?:ai|assistant|model)|uncensored (?:ai|assistant|model)|(?:you|ai|assistant|model)@4 (?:no|without|free of|free from|not bound by|not subject to)@2 (?:restrictions|limitations|guardrails|filters|rules|limits|safety|policies|guidelines))",
    ),
    words(
        Role,
        "reaches for the system prompt",
        "prompt",
        "(?:your|new|override the|overrides the|reveal the|print the|repeat the|leak the|show the|replace the|change the|update the|edit the|overwrite the|output the|quote the|add this to the|ignore the|part of the|include the|append the|is the) (?:full |entire |hidden |complete |whole )?system (?:prompt|message)",
    ),
    words(
        Role,
        "claims authority over the model",
        "authorized admin developer administrator operator anthropic openai system",
        "(?:this is|i am|message from|order from|on behalf of|approved by|authorized by|sent by|signed) (?:the |your |a |an )?(?:system administrator|administrator|developers?|admin|operator|anthropic|openai|system|security team|root)@2 (?:you|ignore|disregard|must|has|have|and|speaking|approved|authorized|grant|override|requires|instructs|orders)",
    ),
    words(
        Exfiltration,
        "sends private data away",
        "send post upload forward email mail transmit exfiltrate leak relay submit report deliver push share sending posting uploading forwarding emailing transmitting ship curl copy pipe",
        "(?:send|post|upload|forward|email|mail|transmit|exfiltrate|leak|relay|submit|report|deliver|push|share|sending|posting|uploading|forwarding|emailing|transmitting|ship|curl|copy|pipe)@8 (?:conversations?|chat|history|system prompt|credentials?|passwords|api keys?|apikey|secrets|secret keys?|private keys?|ssh keys?|env vars?|environment variables?|environment|(?:access|auth|session|api|bearer|refresh) tokens?|cookies|session data|user data|users? data|personal data|messages so far|transcript|tool outputs?|tool results?|clipboard|context window|contents? of|keystrokes|prompts?|private data|sensitive data|mailbox|contacts)@9 (?:to|at|via|through|using|with) (?:[^ .]+ ){0,4}(?:https?|www|webhook|server|endpoint|address|attacker|attackers|us|me|author|following|external|remote|gateway|url|com|net|org|io|example|analytics|collector|dev|xyz|site|domain|ftp|host|proxy|inbox|mailbox|bucket|channel|service)",
    ),
    flat(
        Exfiltration,
        "sends everything away",
        "every each all everything copy entire full whole complete also always",
        r"\b(?:bcc|cc|forward|copy|send|e?mail|post|upload|sync|mirror|report|submit|relay|transmit|leak)\b[^!?\n]{0,80}\b(?:every|each|all|everything|copy of|copies of|entire|full|whole|complete|any)\b[^!?\n]{0,80}(?:https?://|@[a-z0-9-]+\.[a-z]{2,}|webhook\.site|ngrok|pastebin|requestbin)",
    ),
    flat(
        Exfiltration,
        "sends everything away",
        "every each all always also additionally whenever secretly silently first then",
        r"\b(?:every|each|always|also|additionally|whenever|secretly|silently|afterwards|first|then)\b[^!?\n]{0,60}\b(?:bcc|cc|forward|copy|send|e?mail|post|upload|sync|curl|wget|get|visit|relay|transmit|leak|call)\b[^!?\n]{0,80}(?:https?://|@[a-z0-9-]+\.[a-z]{2,}|webhook\.site|ngrok|pastebin)",
    ),
    flat(
        Exfiltration,
        "sends everything away",
        "bcc",
        r"\bbcc\b[ :]{1,2}(?:to )?[a-z0-9._+-]+@[a-z0-9-]+\.[a-z]{2,}",
    ),
    words(
        Exfiltration,
        "sends private data away",
        "exfiltrate siphon smuggle leak steal harvest",
        "(?:exfiltrate|siphon|smuggle|steal|leak)@5 (?:data|everything|secrets?|keys?|conversation|information|credentials?|tokens?|messages?|it|them|contents?|files?|history|passwords?|to|through|via|out)",
    ),
    words(
        Exfiltration,
        "asks for private data in an argument",
        "conversation history prompt contents content key keys environment env messages transcript credentials password passwords token output context",
        "(?:pass|include|put|insert|provide|copy|paste|supply|write|attach|embed|place|add|encode|fill|append|set|store|dump|concatenate|stuff)@6 (?:conversation|chat history|message history|history|system prompt|contents? of|private keys?|ssh keys?|environment variables?|env vars?|previous messages|all messages|user messages|transcript|credentials|users? passwords?|users? (?:api )?keys?|api keys you|secrets|context|tool outputs?|other tools|everything you know|all (?:previous|prior|known)@2)@8 (?:as|in|into|to|within|inside|after|through) (?:[^ .]+ ){0,4}(?:parameters?|params?|arguments?|args?|fields?|value|sidenote|notes?|query|url|link|image|request|comment|metadata|payload|context|call|body|header|filename|feedback|headers|input)",
    ),
    words(
        Exfiltration,
        "asks for private data in an argument",
        "must should set contain pass fill put",
        "(?:must|should|has to|needs to|shall|set (?:it|this) to|fill(?: it| this)? with|put here)@3 (?:contain|include|hold|be|carry|have|with)?@3 (?:full conversation|entire conversation|conversation so far|whole conversation|chat history|conversation history|message history|system prompt|users? passwords?|contents? of|previous messages|users? credentials|your instructions|your context|context window|environment variables)",
    ),
    flat(
        Exfiltration,
        "sends data through a link",
        "![",
        r"!\[[^\]]{0,80}\]\(https?://[^)\s]{1,200}[?&=/][^)\s]{0,100}(?:\{|\[|<|data|conv|hist|secret|=)",
    ),
    words(
        CrossTool,
        "steers other tools",
        "tool tools function functions plugin plugins",
        "(?:before|prior to|instead of|rather than|in place of|whenever|when|while|every time|each time|after|until|do not|dont|never|stop|avoid|refrain from|not)@3 (?:you )?(?:using|calling|invoking|running|use|call|invoke|executing|run|trust|rely on|trusting|prefer|touching|falling back to|other than|any|using any of)(?: (?:any|another|other|all|every|each|different|competing|remaining|the other|these other)(?: [^ .]+){0,3}| (?:the|a|an|your|that)(?: [^ .]+){1,3}) (?:tools?|functions?|plugins?|connectors?)",
    ),
    words(
        CrossTool,
        "steers other tools",
        "tool tools functions plugins",
        "(?:before|instead of|rather than|in place of|over|replaces|replacing|supersedes|overrides|above|ahead of|not|disable|disables|ignore|block|avoid|than)(?: (?:any|all|every|the|of|your|each))? (?:other|another|competing|built in|builtin|default|native|remaining|similar|existing)(?: [^ .]+){0,2} (?:tools?|functions|plugins|servers)",
    ),
    words(
        CrossTool,
        "steers other tools",
        "tool tools functions plugins servers",
        "(?:other|another|all|every|any other|remaining|competing|existing|similar|built in)(?: [^ .]+){0,2} (?:tools?|functions|plugins|servers)(?: calls?)? (?:must|should|are|is|will|need|have|cannot|require|become|were|has been|have been|do not|no longer|fail|return)",
    ),
    words(
        CrossTool,
        "steers other tools",
        "tool tools",
        "(?:instead of|rather than|in place of|replacement for|prefer (?:this|it)@2 over|supersedes|overrides|takes (?:precedence|priority) over|replaces)(?: the| your| any)?(?: [^ .]+){1,3} (?:tools?|function|server|plugin)",
    ),
    words(
        CrossTool,
        "steers other tools",
        "when whenever",
        r"(?:when|whenever|if|once|every time|before|after)(?: the)?(?: [^ .]+_[^ .]+| [^ .]+){1,2} (?:tool|function) (?:is|gets|was|has been) (?:called|used|invoked|run|available|executed|present)",
    ),
    words(
        CrossTool,
        "steers other tools",
        "_",
        r"(?:when|whenever|if|once|before|after|instead of|rather than|do not use|never use|dont call|never call|stop using)(?: calling| using| you call| you use| invoking)?(?: the)? [a-z0-9]+_[a-z0-9_]+@3 (?:is|called|used|invoked|tool|you|must|always|because|as|set|change|add|first)",
    ),
    words(
        CrossTool,
        "changes what other tools are sent",
        "tool tools",
        "(?:change|modify|replace|rewrite|alter|set|redirect|swap|add|append|edit)@5 (?:recipients?|address|parameters?|arguments?|destination|input|inputs|to field|url|output|amount|account)@5 (?:of|in|for|to|from|passed to|sent to)@4 (?:tools?|function|server)",
    ),
    words(
        CrossTool,
        "steers other tools",
        "tool",
        "(?:first|also|then|immediately|next|afterwards|always|must|should) (?:call|invoke|run|use|execute|trigger) (?:the|your)(?: [^ .]+){1,3} (?:tool|function|server)",
    ),
    flat(CrossTool, "names another server's tools", "mcp_ mcp:", r"\bmcp__?[a-z0-9]|\bmcp://"),
];
