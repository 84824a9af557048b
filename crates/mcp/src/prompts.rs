//! Prompts: tasks that people can choose in their client.

use crate::backend::Object;

pub(crate) struct Prompt {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// The name of its only argument, and what the argument means.
    pub(crate) argument: (&'static str, &'static str),
    /// The text, which contains the argument's name in braces.
    text: &'static str,
}

pub(crate) const ALL: [Prompt; 3] = [
    Prompt {
        name: "find_address",
        description: "Find where the game keeps a value",
        argument: ("value", "What to find, for example: the number of lives, which is now 3"),
        text: "Find the memory address of: {value}. First look for a name with symbols. If there is no name, save a snapshot. Begin a \
            search of the smallest type that fits, narrow it with equal and the present number, change the number by playing with \
            act, and narrow again with equal, increased or decreased, until few candidates are left. If none is left, begin again \
            with a larger type. Check the candidates: write another number, look at the picture, then load the snapshot. Report \
            the address, the type, and an expression that reads it.",
    },
    Prompt {
        name: "reproduce_bug",
        description: "Make a recording that shows a bug",
        argument: ("bug", "What happens, and when"),
        text: "Reproduce this bug: {bug}. Start a recording with power_on. Play with act, with a note before each attempt, until the bug \
            happens. Stop the recording. Replay it, and confirm that the bug happens again. Report the name of the recording, the \
            frame, and the memory or the picture that shows the bug.",
    },
    Prompt {
        name: "play_until",
        description: "Play until a goal is reached",
        argument: ("goal", "When to stop, for example: level 2 begins"),
        text: "Play until: {goal}. Begin with resume, to see earlier notes. Find a condition on memory for the goal, by symbols or search. \
            Use act with until, stop and values, and a picture only if memory does not show what you need. Save a snapshot before \
            risky parts, and load it after a failure. Write a note about each thing that you learn. At the end, save a snapshot and \
            report how it went.",
    },
];

impl Prompt {
    /// The prompt's text, with the argument from a request in it.
    ///
    /// # Errors
    /// If the argument is missing or not a string.
    pub(crate) fn text(&self, arguments: Option<&Object>) -> Result<String, String> {
        let (name, meaning) = self.argument;
        let value = arguments.and_then(|arguments| arguments.get(name)?.as_str());
        let value = value.ok_or_else(|| {
            format!("the argument {name} is missing or not a string. Its meaning: {meaning}")
        })?;
        Ok(self.text.replace(&format!("{{{name}}}"), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_contains_its_argument() {
        for prompt in &ALL {
            let (name, _) = prompt.argument;
            let mut arguments = Object::new();
            arguments.insert(name.to_owned(), "XYZ".into());
            let text = prompt.text(Some(&arguments)).unwrap();
            assert!(text.contains("XYZ") && !text.contains('{'), "{text}");
            assert!(prompt.text(None).unwrap_err().contains(name));
        }
    }
}
