//! The shipped rules, from `profiles/secrets/`.

use crate::rule::RuleFile;

pub(crate) const SHIPPED: [RuleFile<'static>; 12] = [
    RuleFile { name: "ai.json", text: include_str!("../../../profiles/secrets/ai.json") },
    RuleFile { name: "chat.json", text: include_str!("../../../profiles/secrets/chat.json") },
    RuleFile { name: "ci.json", text: include_str!("../../../profiles/secrets/ci.json") },
    RuleFile { name: "cloud.json", text: include_str!("../../../profiles/secrets/cloud.json") },
    RuleFile { name: "code.json", text: include_str!("../../../profiles/secrets/code.json") },
    RuleFile { name: "database.json", text: include_str!("../../../profiles/secrets/database.json") },
    RuleFile { name: "generic.json", text: include_str!("../../../profiles/secrets/generic.json") },
    RuleFile { name: "keys.json", text: include_str!("../../../profiles/secrets/keys.json") },
    RuleFile { name: "mail.json", text: include_str!("../../../profiles/secrets/mail.json") },
    RuleFile { name: "monitoring.json", text: include_str!("../../../profiles/secrets/monitoring.json") },
    RuleFile { name: "payment.json", text: include_str!("../../../profiles/secrets/payment.json") },
    RuleFile { name: "saas.json", text: include_str!("../../../profiles/secrets/saas.json") },
];
