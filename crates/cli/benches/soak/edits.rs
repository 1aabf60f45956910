//! The time until an edit is live. Edits settings, policies and a tool in turn, and calls until an answer shows the edit.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{door::SoakClient, toolgate};

pub struct Edits {
    folder: PathBuf,
    /// The number of the next edit.
    number: u64,
    settings: Vec<Duration>,
    policies: Vec<Duration>,
    /// Measured from the end of `toolgate publish`, because an edited tool is a draft until its test run passes.
    published: Vec<Duration>,
    /// Measured from writing the file.
    tools: Vec<Duration>,
    refused: u64,
}

impl Edits {
    /// Writes the initial files.
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

    pub fn next(&mut self, door: &SoakClient) {
        match self.number % 4 {
            1 => self.change_settings(door),
            2 => self.change_policies(door),
            3 => self.change_tool(door),
            _ => self.make_a_mistake(),
        }
        self.number += 1;
    }

    fn change_settings(&mut self, door: &SoakClient) {
        let is_narrow = self.settings.len().is_multiple_of(2);
        let (size, sign) = if is_narrow { (NARROW, "bind.too_large") } else { (ROOMY, "number ") };
        let begin = Instant::now();
        self.put("toolgate.yaml", &settings(size, self.number));
        until(door, &"many words ".repeat(150), sign);
        self.settings.push(begin.elapsed());
    }

    fn change_policies(&mut self, door: &SoakClient) {
        let begin = Instant::now();
        self.put("rules.cedar", &rules(self.number));
        until(door, &closed(self.number), "decide.policy_forbids");
        self.policies.push(begin.elapsed());
    }

    fn change_tool(&mut self, door: &SoakClient) {
        let begin = Instant::now();
        self.put("tools/edition.json", &tool(self.number));
        toolgate(&self.folder, &["publish", "edition"]);
        let published = Instant::now();
        until(door, "hi", &edition(self.number));
        self.published.push(published.elapsed());
        self.tools.push(begin.elapsed());
    }

    /// Writes a broken document, then rules that forbid everything. The rules must not become active, which clients would notice.
    /// The pause keeps a running reload from reading only the second edit.
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

    /// Replaces the file atomically.
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

fn until(door: &SoakClient, text: &str, sign: &str) {
    let begin = Instant::now();
    loop {
        let answer = door.call("edition", text).expect("an answer");
        if answer.contains(sign) {
            return;
        }
        // Guards against hanging; far beyond the goal.
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

/// Every edit forbids another text for both tools; only `until` sends that text.
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

/// Ends with a delimiter, so the text for 1 is not a prefix of that for 10.
fn edition(number: u64) -> String {
    format!("number {number}.")
}

const NARROW: &str = "1KiB";
const ROOMY: &str = "4KiB";
const SECOND: Duration = Duration::from_secs(1);
