use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(instant: i64, zone: &str, expect: &Value) {
    let Ok(HelperAnswer::Json(answer)) = zoned_time(&json!([instant, zone]).to_string()) else {
        panic!("no time for {instant} in {zone}");
    };
    assert_eq!(&serde_json::from_str::<Value>(&answer).unwrap(), expect);
}

#[track_caller]
fn check_name(name: &str, expect: Option<&str>) {
    let expect = expect.map_or(HelperAnswer::Nothing, |name| HelperAnswer::Text(name.to_owned()));
    assert_eq!(zone_name(name), Ok(expect));
}

#[test]
fn summer_and_winter() {
    let summer = json!([2024, 7, 1, 8, 0, 0, 0, 1, -14400, "EDT", "Eastern Daylight Time", "EDT"]);
    check(1_719_835_200_000, "America/New_York", &summer);
    let winter = json!([2024, 1, 1, 7, 0, 0, 5, 1, -18000, "EST", "Eastern Standard Time", "EST"]);
    check(1_704_110_400_005, "america/new_york", &winter);
}

#[test]
fn irish_summer_time_is_called_standard() {
    let summer = json!([2024, 7, 1, 13, 0, 0, 0, 1, 3600, "IST", "Irish Standard Time", ""]);
    check(1_719_835_200_000, "Europe/Dublin", &summer);
}

#[test]
fn fixed_offsets() {
    check(0, "+05:30", &json!([1970, 1, 1, 5, 30, 0, 0, 4, 19800, "+05:30", "", ""]));
    check(0, "-0330", &json!([1969, 12, 31, 20, 30, 0, 0, 3, -12600, "-03:30", "", ""]));
    check(
        -1,
        "UTC",
        &json!([1969, 12, 31, 23, 59, 59, 999, 3, 0, "UTC", "Coordinated Universal Time", "UTC"]),
    );
}

#[test]
fn limits_of_the_date_range() {
    let last = json!([275_760, 9, 12, 20, 0, 0, 0, 5, -14400, "EDT", "Eastern Daylight Time", "EDT"]);
    check(8_640_000_000_000_000, "America/New_York", &last);
    let first = json!([-271_821, 4, 20, 0, 0, 0, 0, 2, 0, "UTC", "Coordinated Universal Time", "UTC"]);
    check(-8_640_000_000_000_000, "UTC", &first);
}

#[test]
fn boundary_of_the_400_year_cycle() {
    for instant in
        [-1, 1].into_iter().flat_map(|sign| [0, 1, -1].map(|step| sign * COUNTABLE_MILLISECONDS + step))
    {
        let Ok(HelperAnswer::Json(answer)) = zoned_time(&json!([instant, "UTC"]).to_string()) else {
            panic!("{instant}")
        };
        let year = serde_json::from_str::<Value>(&answer).unwrap()[0].as_i64().unwrap();
        assert!(year == 9892 || year == -5953, "{instant} is in {year}");
    }
}

#[test]
fn invalid_times_are_refused() {
    let questions = [
        "",
        "[]",
        "[1.5,\"UTC\"]",
        "[8640000000000001,\"UTC\"]",
        "[0,\"Nowhere/Town\"]",
        "[0,\"\"]",
        "[0,\"+24:00\"]",
    ];
    for question in
        questions.into_iter().chain(["[0,\"Factory\"]", "[0,\"/etc/localtime\"]", "[0,\"../UTC\"]"])
    {
        assert!(zoned_time(question).is_err(), "{question}");
    }
}

#[test]
fn names_use_the_spelling_of_the_database() {
    check_name("europe/BERLIN", Some("Europe/Berlin"));
    check_name("utc", Some("UTC"));
    check_name("Asia/Calcutta", Some("Asia/Calcutta"));
    check_name("+0530", Some("+05:30"));
    check_name("-00", Some("+00:00"));
    for name in [
        "",
        "Mars/Olympus",
        "Factory",
        "Etc/Unknown",
        "+5",
        "+05:60",
        "+5:030",
        "+é1",
        "CEST",
        &"x".repeat(1 << 20),
    ] {
        check_name(name, None);
    }
}

#[test]
fn every_listed_name_is_found() {
    let Ok(HelperAnswer::Json(names)) = zone_name("*") else { panic!("no list") };
    let names: Vec<String> = serde_json::from_str(&names).unwrap();
    assert!(names.len() > 400);
    for name in &names {
        assert!(zoned_time(&json!([0, name]).to_string()).is_ok(), "{name}");
        check_name(name, Some(name));
    }
}

#[test]
fn zone_name_is_shown_only_if_in_use() {
    assert_eq!(names::names_of("Asia/Tokyo").unwrap().standard, "Japan Standard Time");
    assert_eq!(names::names_of("Etc/GMT+5"), None);
    assert_eq!(names::names_of(""), None);
}
