//! For every operation, leaves out each argument, and gives it values of every wrong type.

use framewire_protocol::op::OPS;
use serde_json::{Value, json};

use super::live::client::Rpc;
use super::problems::{problem, problem_says};
use super::sent;
use crate::support::{Server, encoded, field};

/// An argument of an operation.
struct Argument {
    name: String,
    /// Its type, as `GET /v1/operations` gives it.
    kind: String,
    /// The smallest and the largest number that it accepts, if it is a number.
    range: Option<(i64, i64)>,
}

impl Argument {
    fn good(&self) -> Value {
        match self.kind.as_str() {
            "bool" => json!(true),
            "text" => json!("x"),
            "bytes" => json!("AAAA"),
            _ => json!(0),
        }
    }

    /// Values that it does not accept.
    fn wrong(&self) -> Vec<Value> {
        let mut values = vec![json!(null), json!({}), json!([[]]), json!(["x"]), json!({"a": 1}), json!(1.5)];
        let texts = ["x", "", "\0", "0x", "0xg", "-0x1", "0x1ffffffff", "99999999999", "u8["];
        match (self.name.as_str(), self.kind.as_str()) {
            ("path", _) => values.extend(["", "a\0b"].map(Value::from)),
            (_, "text") => {}
            (_, "bytes") => values.extend(["?", "A", "AAA"].map(Value::from)),
            (_, "bool") => values.extend(["true", ""].map(Value::from)),
            ("domain", _) => {}
            _ => values.extend(texts.map(Value::from)),
        }
        if self.kind != "bool" {
            values.push(json!(true));
        }
        match self.range {
            None => values.extend([0, -1].map(Value::from)),
            Some((least, most)) => {
                values.extend([least - 1, most + 1, i64::MIN, i64::MAX].map(Value::from));
                values.extend([json!(u64::MAX), json!(1e300)]);
            }
        }
        values
    }
}

/// The operations that clients can use, and their arguments.
fn operations(server: &Server) -> Vec<(String, Vec<Argument>)> {
    let table: Value = serde_json::from_str(&server.text("/v1/operations")).unwrap();
    let operation = |operation: &Value| {
        let name = operation["name"].as_str().unwrap();
        let row = OPS.iter().find(|row| row.name == name).unwrap();
        let arguments = row.args.iter().map(|arg| Argument {
            name: arg.name.to_owned(),
            kind: arg.kind.name().to_owned(),
            // The value of a register can also be written as an unsigned number.
            range: arg
                .range
                .map(|(least, most)| if least < -1000 { (least, u32::MAX.into()) } else { (least, most) }),
        });
        (name.to_owned(), arguments.collect())
    };
    table["operations"].as_array().unwrap().iter().map(operation).collect()
}

/// Sends the operation after one that writes a number. Neither of them may be performed.
#[track_caller]
fn assert_refused(server: &Server, operation: &Value, argument: &str) {
    let first = json!({"op": "write8", "address": field("score"), "value": 7});
    let error = problem(&server.send("POST", "/v1/batch", &json!({"ops": [first, operation]})), 400);
    let place = error["parameter"].as_str().unwrap_or_default();
    // The place can also be an entry of a list.
    let rest = place.strip_prefix(&format!("ops[1].{argument}"));
    assert!(rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.'])), "{operation}: {error}");
    assert!(error["detail"].as_str().unwrap().starts_with(place), "{operation}: {error}");
}

#[test]
fn each_wrong_argument_of_an_operation_is_400_and_the_error_names_it() {
    let server = Server::paused();
    let mut rpc = Rpc::open(&server);
    for (name, arguments) in operations(&server) {
        let mut good = json!({"op": name});
        for argument in &arguments {
            good[&argument.name] = argument.good();
        }
        for argument in &arguments {
            let mut operation = good.clone();
            for value in argument.wrong() {
                operation[&argument.name] = value;
                assert_refused(&server, &operation, &argument.name);
            }
            operation.as_object_mut().unwrap().remove(&argument.name);
            assert_refused(&server, &operation, &argument.name);
            operation.as_object_mut().unwrap().remove("op");
            let error = rpc.error(&name, operation, -32602);
            assert_eq!(error["parameter"], argument.name, "{name}: {error}");
        }
    }
    assert_eq!(server.number(&format!("/core/read8?address={}", field("score"))), 0);
}

#[test]
fn each_wrong_argument_of_a_convenience_operation_is_400_and_the_error_names_it() {
    let server = Server::paused();
    // The operations, and those of their arguments that may be left out.
    let operations = [
        (json!({"op": "read", "address": "score", "type": "u8"}), "type"),
        (json!({"op": "read_many", "addresses": ["score"], "type": "u8"}), "type"),
        (json!({"op": "read_many", "addresses": [0], "domain": "wram"}), "domain"),
        (json!({"op": "write", "address": "score", "value": 1, "type": "u8"}), "type"),
        (json!({"op": "write_many", "writes": [{"address": "score", "value": 1}], "domain": null}), "domain"),
        (json!({"op": "tap", "keys": ["A"], "frames": 1}), "frames"),
        (json!({"op": "input", "sequence": "A"}), "sequence"),
        (json!({"op": "input", "presses": [{"at": 0, "keys": ["A"]}]}), "presses"),
        (json!({"op": "input", "steps": [{"offset": 0, "keys": ["A"]}, {"offset": 1, "keys": []}]}), "steps"),
        (json!({"op": "run", "steps": [{"frames": 1}], "stop": ["score"]}), "stop"),
        (json!({"op": "evaluate", "values": ["score"]}), ""),
        (json!({"op": "read_text", "address": "score", "length": 1}), ""),
        (json!({"op": "freeze", "address": "score", "value": 1, "type": "u8"}), "type"),
        (json!({"op": "unfreeze", "address": "score"}), "address"),
    ];
    for (good, optional) in operations {
        let names = good.as_object().unwrap().keys().filter(|name| *name != "op");
        for name in names {
            let mut operation = good.clone();
            for value in
                [json!(true), json!([[]]), json!([{}]), json!([null]), json!([1.5]), json!({"a": []})]
            {
                operation[name] = value;
                assert_refused(&server, &operation, name);
            }
            operation.as_object_mut().unwrap().remove(name);
            if name != optional {
                assert_refused(&server, &operation, name);
            }
        }
    }
    assert_eq!(server.number(&format!("/core/read8?address={}", field("score"))), 0);
}

#[test]
fn an_expression_whose_value_cannot_be_an_address_is_refused_before_any_operation_is_performed() {
    let server = Server::paused();
    for address in ["-1", "-0x1", "4294967296", "0xffffffff + 1", "2 - 3"] {
        for mut operation in [
            json!({"op": "read8"}),
            json!({"op": "write8", "value": 1}),
            json!({"op": "read_range", "length": 1}),
            json!({"op": "read"}),
            json!({"op": "write", "value": 1}),
            json!({"op": "read_text", "length": 1}),
            json!({"op": "freeze", "value": 1}),
        ] {
            operation["address"] = address.into();
            assert_refused(&server, &operation, "address");
        }
        let operation = json!({"op": "read_many", "addresses": ["score", address]});
        assert_refused(&server, &operation, "addresses[1]");
        let target = format!("/v1/memory/{}", encoded(address));
        problem_says(&server.get(&target), 400, "from 0 to 0xFFFFFFFF");
        let target = format!("/v1/freeze/{}", encoded(address));
        let error = sent(&server, "PUT", &target, &json!({"value": 1}), 400);
        assert_eq!(error["parameter"], "address", "{error}");
    }
    assert_eq!(server.number(&format!("/core/read8?address={}", field("score"))), 0);
}

#[test]
fn a_path_that_no_file_can_have_is_400() {
    let server = Server::paused();
    for path in ["", "a\0b"] {
        for target in ["/v1/load", "/v1/cheats"] {
            let error = sent(&server, "POST", target, &json!({"path": path}), 400);
            assert_eq!(error["parameter"], "path", "{target}: {error}");
        }
    }
}

#[test]
fn a_float_that_does_not_fit_into_32_bits_is_400() {
    let server = Server::paused();
    for number in [1e300, -1e39] {
        let error = sent(&server, "POST", "/v1/find", &json!({"float": number}), 400);
        assert_eq!(error["parameter"], "float", "{error}");
    }
}
