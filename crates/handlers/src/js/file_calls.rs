//! Converts the name, arguments and options of a file call from the wire into a typed call.

use serde_json::{Value, json};
use toolgate_sandbox::wire::FileCall;

use crate::files::{
    CutOptions, EntryKind, FileError, FileErrorClass, Files, FindOptions, GrepOptions, Occurrences,
    SearchOptions, SortOptions,
};

/// Performs the call. The result is JSON in the form that tools expect.
pub fn perform(files: &Files, call: &FileCall) -> Result<String, FileError> {
    answer(files, call).map_err(|error| {
        let helper = HELPERS.iter().find(|name| name.strip_prefix(ALL) == Some(call.function.as_str()));
        FileError { helper: helper.copied().unwrap_or(error.helper), ..error }
    })
}

fn answer(files: &Files, call: &FileCall) -> Result<String, FileError> {
    let asked = FileArguments { call };
    let answer = match call.function.as_str() {
        "workspace" => json!(files.workspace()),
        "readRoots" => json!(files.read_roots()),
        "readText" => json!(files.read_text(asked.text(0)?)?),
        "list" => json!(files.list(asked.text_or(0, "."))?),
        "exists" => json!(files.exists(asked.text(0)?)?),
        "stat" => {
            let stat = files.stat(asked.text(0)?)?;
            json!({ "size": stat.size, "mtime": stat.mtime, "directory": stat.directory })
        }
        "grep" => json!(files.grep(asked.text(0)?, asked.text(1)?, asked.grep()?)?),
        "lineCount" => json!(files.line_count(asked.text(0)?)?),
        "slice" => {
            json!(files.slice(asked.text(0)?, asked.number_or(1, 0)?, asked.number_or(2, i64::MAX)?)?)
        }
        "cut" => json!(files.cut(asked.text(0)?, &asked.cut()?)?),
        "sort" => json!(files.sort(asked.text(0)?, asked.sort())?),
        "find" => json!(files.find(asked.text_or(0, "."), asked.text_or(1, "*"), asked.find()?)?),
        "searchInFiles" => {
            let options = asked.search()?;
            let (dir, glob) = (asked.text_or(0, "."), asked.text_or(1, "*"));
            let hits = files.search_in_files(dir, glob, asked.text(2)?, options)?;
            let hits =
                hits.into_iter().map(|hit| json!({ "file": hit.file, "line": hit.line, "text": hit.text }));
            Value::Array(hits.collect())
        }
        "writeText" => json!(files.write_text(asked.text(0)?, asked.text_or(1, ""))?),
        "appendText" => json!(files.append_text(asked.text(0)?, asked.text_or(1, ""))?),
        "editText" => {
            let all = if asked.flag("replaceAll") { Occurrences::All } else { Occurrences::Only };
            let edited = files.edit_text(asked.text(0)?, asked.text(1)?, asked.text(2)?, all)?;
            json!({ "path": edited.path, "replacements": edited.replacements })
        }
        "copy" => json!(files.copy(asked.text(0)?, asked.text(1)?)?),
        "move" => json!(files.move_(asked.text(0)?, asked.text(1)?)?),
        "delete" => json!(files.delete(asked.text(0)?)?),
        "deleteDir" => json!(files.delete_dir(asked.text(0)?)?),
        _ => return Err(invalid("unknown-function", "no such function in safety.fs")),
    };
    Ok(answer.to_string())
}

struct FileArguments<'a> {
    call: &'a FileCall,
}

impl<'a> FileArguments<'a> {
    fn text_or(&self, index: usize, default: &'a str) -> &'a str {
        self.call.arguments.get(index).map(String::as_str).filter(|text| !text.is_empty()).unwrap_or(default)
    }

    /// May be empty, unlike a path; the function itself rejects an empty text where necessary.
    fn text(&self, index: usize) -> Result<&'a str, FileError> {
        // The prelude drops trailing absent arguments; an empty text is kept.
        self.call
            .arguments
            .get(index)
            .map(String::as_str)
            .ok_or_else(|| invalid("missing-args", "the function needs more arguments"))
    }

    fn number_or(&self, index: usize, default: i64) -> Result<i64, FileError> {
        match self.text_or(index, "") {
            "" => Ok(default),
            text => whole(text),
        }
    }

    fn option(&self, name: &str) -> Option<&'a str> {
        self.call.options.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    fn flag(&self, name: &str) -> bool {
        self.option(name) == Some("true")
    }

    /// Absent and zero both mean the default.
    fn size(&self, name: &str) -> Result<usize, FileError> {
        let number = self.option(name).map_or(Ok(0), whole)?;
        usize::try_from(number).map_err(|_| invalid("invalid-options", "a limit is not negative"))
    }

    fn grep(&self) -> Result<GrepOptions, FileError> {
        Ok(GrepOptions {
            case_insensitive: self.flag("caseInsensitive"),
            limit: self.size("limit")?,
            numbered: self.flag("numbered"),
        })
    }

    fn cut(&self) -> Result<CutOptions, FileError> {
        let fields = self.option("fields").unwrap_or_default();
        let fields =
            fields.split(',').filter(|field| !field.is_empty()).map(whole).collect::<Result<_, _>>()?;
        Ok(CutOptions {
            fields,
            delimiter: self.option("delimiter").map(str::to_owned),
            regex: self.flag("regex"),
        })
    }

    fn sort(&self) -> SortOptions {
        SortOptions {
            reverse: self.flag("reverse"),
            numeric: self.flag("numeric"),
            case_insensitive: self.flag("caseInsensitive"),
            unique: self.flag("unique"),
        }
    }

    fn find(&self) -> Result<FindOptions, FileError> {
        let kind = match self.option("type") {
            None => None,
            Some("file") => Some(EntryKind::File),
            Some("dir") => Some(EntryKind::Dir),
            Some(_) => return Err(invalid("invalid-options", "`type` is file or dir")),
        };
        Ok(FindOptions { max_depth: self.size("maxDepth")?, kind })
    }

    fn search(&self) -> Result<SearchOptions, FileError> {
        Ok(SearchOptions {
            case_insensitive: self.flag("caseInsensitive"),
            max_depth: self.size("maxDepth")?,
            limit: self.size("limit")?,
        })
    }
}

fn whole(text: &str) -> Result<i64, FileError> {
    text.parse().map_err(|_| invalid("invalid-argument", "a whole number is needed"))
}

fn invalid(reason: &'static str, message: &str) -> FileError {
    FileError {
        class: FileErrorClass::InvalidInput,
        helper: "safety.fs",
        reason,
        message: message.to_owned(),
    }
}

const ALL: &str = "safety.fs.";

const HELPERS: [&str; 20] = [
    "safety.fs.workspace",
    "safety.fs.readRoots",
    "safety.fs.readText",
    "safety.fs.list",
    "safety.fs.exists",
    "safety.fs.stat",
    "safety.fs.grep",
    "safety.fs.lineCount",
    "safety.fs.slice",
    "safety.fs.cut",
    "safety.fs.sort",
    "safety.fs.find",
    "safety.fs.searchInFiles",
    "safety.fs.writeText",
    "safety.fs.appendText",
    "safety.fs.editText",
    "safety.fs.copy",
    "safety.fs.move",
    "safety.fs.delete",
    "safety.fs.deleteDir",
];
