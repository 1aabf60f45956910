//! How long until an edit counts? Settings, policies and a tool are edited in turn, and called until an answer shows it.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{door::Door, toolgate};

pub struct Edits {
    folder: PathBuf,
    /// Of the edit that comes next.
    number: u64,
    settings: Vec<Duration>,
    policies: Vec<Duration>,
    /// From when `toolgate publish` has ended: before its test run has passed, an edited tool is a draft.
    published: Vec<Duration>,
    /// The same, from when the file was written.
    tools: Vec<Duration>,
    refused: u64,
}

impl Edits {
    /// Writes what is edited later.
    pub fn new(folder: &Path) -> Self {
        let edits = Self {
            folder: folder.to_owned(),
            number: 1,
            settings: Vec::new(),
            policies: Vec::new(),
            published: Vec::new(),
            tools: Vec::new(),
            refused: 0,
        };
        edits.put("toolgate.yaml", &settings(ROOMY, 0));
        edits.put("rules.cedar", &rules(0));
        edits.put("tools/edition.json", &tool(0));
        edits
    }

    pub fn next(&mut self, door: &Door) {
        match self.number % 4 {
            1 => self.change_settings(door),
            2 => self.change_policies(door),
            3 => self.change_tool(door),
            _ => self.make_a_mistake(),
        }
        self.number += 1;
    }

    fn change_settings(&mut self, door: &Door) {
        let is_narrow = self.settings.len().is_multiple_of(2);
        let (size, sign) = if is_narrow { (NARROW, "bind.too_large") } else { (ROOMY, "number ") };
        let begin = Instant::now();
        self.put("toolgate.yaml", &settings(size, self.number));
        until(door, &"many words ".repeat(150), sign);
        self.settings.push(begin.elapsed());
    }

    fn change_policies(&mut self, door: &Door) {
        let begin = Instant::now();
        self.put("rules.cedar", &rules(self.number));
        until(door, &closed(self.number), "decide.policy_forbids");
        self.policies.push(begin.elapsed());
    }

    fn change_tool(&mut self, door: &Door) {
        let begin = Instant::now();
        self.put("tools/edition.json", &tool(self.number));
        toolgate(&self.folder, &["publish", "edition"]);
        let published = Instant::now();
        until(door, "hi", &edition(self.number));
        self.published.push(published.elapsed());
        self.tools.push(begin.elapsed());
    }

    /// With a broken document beside them, rules that forbid everything do not count: clients would notice. A pause
    /// between the two, for a reload that has begun must not read one from before and the other from after.
    fn make_a_mistake(&mut self) {
        let pause = || thread::sleep(Duration::from_millis(400));
        self.put("tools/broken.json", "{ \"name\": \"broken\", \"code\": ");
        pause();
        self.put("rules.cedar", "forbid(principal, action, resource);");
        pause();
        self.put("rules.cedar", &rules(self.number));
        pause();
        fs::remove_file(self.folder.join("tools/broken.json")).unwrap();
        self.refused += 1;
    }

    /// In one step, so that nobody reads half of it.
    fn put(&self, name: &str, text: &str) {
        let new = self.folder.join("unfinished");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.folder.join(name)).unwrap();
    }

    pub fn report(&self) {
        let edits = self.settings.len() + self.policies.len() + self.tools.len();
        println!("  edits {edits}, with a mistake {}; live after, in ms", self.refused);
        show("settings", &self.settings, Some(SECOND));
        show("policies", &self.policies, Some(SECOND));
        show("a tool, once it is published", &self.published, Some(SECOND));
        show("a tool, publishing included", &self.tools, None);
    }
}

fn until(door: &Door, text: &str, sign: &str) {
    let begin = Instant::now();
    loop {
        let answer = door.call("edition", text).expect("an answer");
        if answer.contains(sign) {
            return;
        }
        // A guard against hanging, far beyond the goal.
        assert!(begin.elapsed() < Duration::from_mins(1), "never `{sign}`: {answer}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn show(what: &str, times: &[Duration], goal: Option<Duration>) {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let Some(most) = sorted.last() else { return };
    let word = match goal {
        None => "",
        Some(goal) if *most <= goal => " (goal ≤ 1 s: met)",
        Some(_) => " (goal ≤ 1 s: MISSED)",
    };
    println!(
        "    {what:<30} p50 {:>6}   max {:>6}{word}",
        sorted[sorted.len() / 2].as_millis(),
        most.as_millis()
    );
}

fn settings(arguments: &str, number: u64) -> String {
    format!(
        "version: 1\nlimits:\n  calls_per_caller: 64\n  arguments: {arguments}\npolicy:\n  cedar: [rules.cedar]\n# {number}\n"
    )
}

/// Every edition closes both tools for another text, which only `until` sends.
fn rules(number: u64) -> String {
    format!(
        "permit(principal, action, resource);
@id(\"closed-{number}\") forbid(principal, action in [Action::\"word_count\", Action::\"edition\"], resource)
when {{ context.input.text == \"{}\" }};\n",
        closed(number)
    )
}

fn closed(number: u64) -> String {
    format!("closed {number}")
}

fn tool(number: u64) -> String {
    json!({
        "name": "edition",
        "description": "Tells which edition of itself it is. Returns the edition as a text.",
        "category": "text",
        "tags": ["text"],
        "params": [
            { "name": "text", "description": "A text to repeat", "type": "STRING", "required": true, "testValue": "to be" },
        ],
        "codeType": "Javascript",
        "code": format!("return {{ edition: '{}', letters: text.length }};", edition(number)),
        "sandboxOverrides": { "networkMode": "blocked" },
        "x-toolgate-classification": "read",
        "x-toolgate-output": {
            "type": "object",
            "properties": { "edition": { "type": "string" }, "letters": { "type": "integer" } },
            "required": ["edition", "letters"],
        },
    })
    .to_string()
}

/// With an end, so that one is not the beginning of ten.
fn edition(number: u64) -> String {
    format!("number {number}.")
}

const NARROW: &str = "1KiB";
const ROOMY: &str = "4KiB";
const SECOND: Duration = Duration::from_secs(1);
