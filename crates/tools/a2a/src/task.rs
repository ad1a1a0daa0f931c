//! A task at another agent, and what each answer of that agent makes of it. No I/O.

use chrono::{DateTime, Utc};
use rcrt_a2a_types::{Message, Part, PartContent, Reply, Role, Task, TaskState};
use rcrt_breadcrumb::foreign_text::{line, lines};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::Settings;
use crate::agent::Interface;

pub use rcrt_breadcrumb::schema_names::A2A_TASK as TASK_SCHEMA;

/// The most questions of one task.
const MAX_ROUNDS: u32 = 20;
/// So many equal questions in a row end a task.
const MAX_SAME: u32 = 3;
/// The most characters of a result's text.
const MAX_TEXT: usize = 100_000;
/// The most bytes of a result's data, as JSON.
const MAX_DATA: usize = 200_000;
const MAX_QUESTION: usize = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The message is being sent, and the agent has not accepted it yet.
    Sending,
    Working,
    /// The agent asked a question. `invoke_agent` with `task_id` answers it.
    InputRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
    /// The time is up. A later reply is still added to the record, which then has `late`.
    TimedOut,
}

impl Status {
    /// Nothing more happens.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }
}

/// The context of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    pub message: String,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TaskResult>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The agent's own id of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    pub interface: Interface,
    /// How many questions the agent asked.
    #[serde(default)]
    pub rounds: u32,
    /// How many of the last ones were the same.
    #[serde(default)]
    pub same: u32,
    /// The id of the message with the last question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_id: Option<String>,
    /// The result came after the time was up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// No late reply is waited for any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
    /// The hash of the token of the agent's push notifications, if it gets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_hash: Option<String>,
    /// When the last notification came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken_at: Option<DateTime<Utc>>,
    /// The agent that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<Uuid>,
    /// The request of the call that began it.
    pub begun_by: Uuid,
    /// The request of the call that sent the last message.
    pub call: Uuid,
    /// The record of `invoke_agent`, which holds the grant of the secret.
    pub tool_id: Uuid,
    /// The runner that looks at it first.
    pub runner: Uuid,
    pub began_at: DateTime<Utc>,
    /// When the last message was sent.
    pub sent_at: DateTime<Utc>,
    pub deadline_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
}

/// What an agent returned: bounded, and without control characters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Value>,
    /// Files by URL or, without their content, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Value>,
    /// Some of it was left out, because it was too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl TaskRecord {
    pub fn read(context: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        Self::deserialize(Value::Object(context.clone()))
    }

    pub(crate) fn context(&self) -> Map<String, Value> {
        match json!(self) {
            Value::Object(context) => context,
            _ => Map::new(),
        }
    }

    /// Whether something can still happen. Such a task is followed.
    pub(crate) fn is_open(&self) -> bool {
        !self.status.is_final() && !self.given_up
    }

    /// The answer to a question will be sent by this call. Returns whether the task waits for one.
    pub(crate) fn take_answer(&mut self, call: Uuid, now: DateTime<Utc>, deadline: DateTime<Utc>) -> bool {
        let waits = self.status == Status::InputRequired;
        if waits {
            (self.status, self.call) = (Status::Sending, call);
            (self.sent_at, self.deadline_at) = (now, deadline);
        }
        waits
    }

    /// The message was certainly not sent: a question waits for its answer again, and a new task
    /// ends.
    pub(crate) fn take_back(&mut self, why: &str, now: DateTime<Utc>, settings: &Settings) {
        if self.question.is_some() {
            (self.status, self.deadline_at) = (Status::InputRequired, now + settings.answer_time);
        } else {
            self.end(Status::Failed, Some(why.to_owned()), now);
        }
    }

    /// The first message, or the answer to a question.
    pub(crate) fn next_message(&self, id: String, text: &str, data: Option<&Value>) -> Message {
        let mut parts = vec![Part::text(text)];
        parts.extend(data.cloned().map(Part::data));
        let metadata = self.skill.as_ref().map(|skill| Map::from_iter([("skill".to_owned(), skill.clone().into())]));
        Message {
            message_id: id,
            task_id: self.remote_task_id.clone(),
            context_id: self.context_id.clone(),
            role: Role::User,
            parts,
            metadata,
            ..Message::default()
        }
    }

    /// Takes the answer to a message.
    pub(crate) fn take_reply(&mut self, reply: &Reply, now: DateTime<Utc>, settings: &Settings) {
        self.status = Status::Working;
        match reply {
            Reply::Message(message) => {
                self.result = Some(TaskResult::of(std::iter::once(message.parts.as_slice())));
                self.end(Status::Completed, None, now);
            }
            Reply::Task(task) => {
                self.remote_task_id = Some(short_id(&task.id));
                self.context_id = Some(short_id(&task.context_id)).filter(|id| !id.is_empty());
                self.take(task, now, settings);
            }
        }
    }

    /// Takes the state of the task. Returns whether the record changed.
    pub(crate) fn take(&mut self, task: &Task, now: DateTime<Utc>, settings: &Settings) -> bool {
        if !matches!(self.status, Status::Working | Status::TimedOut) {
            return false;
        }
        let said = || task.status.message.as_ref().map(|message| text_of(&message.parts)).unwrap_or_default();
        let ended = |status: &str| {
            let said = lines(&said(), MAX_QUESTION);
            Some(if said.is_empty() { format!("the agent {status} the task and did not say why") } else { said })
        };
        match task.status.state {
            TaskState::Completed => {
                let artifacts = task.artifacts.iter().flatten().map(|artifact| artifact.parts.as_slice());
                let spoken = task.status.message.as_ref().map(|message| message.parts.as_slice());
                self.result = Some(TaskResult::of(artifacts.chain(spoken)));
                self.end(Status::Completed, None, now);
            }
            TaskState::Failed => self.end(Status::Failed, ended("failed"), now),
            TaskState::Canceled => self.end(Status::Canceled, ended("cancelled"), now),
            TaskState::Rejected => self.end(Status::Rejected, ended("rejected"), now),
            TaskState::InputRequired | TaskState::AuthRequired => {
                let id = task.status.message.as_ref().map(|message| short_id(&message.message_id));
                return self.ask(&said(), id, now, settings);
            }
            TaskState::Submitted | TaskState::Working | TaskState::Unspecified => return false,
        }
        true
    }

    /// Takes a question. The one that was answered last can still be there for a moment.
    fn ask(&mut self, question: &str, id: Option<String>, now: DateTime<Utc>, settings: &Settings) -> bool {
        let question = lines(question, MAX_QUESTION);
        let is_same = self.question.as_ref() == Some(&question);
        if is_same && id.is_some() && id == self.question_id {
            return false;
        }
        self.rounds += 1;
        self.same = if is_same { self.same + 1 } else { 1 };
        if self.same >= MAX_SAME {
            let why = format!("the agent asked the same question {MAX_SAME} times in a row");
            self.end(Status::Failed, Some(why), now);
        } else if self.rounds > MAX_ROUNDS {
            self.end(Status::Failed, Some(format!("the agent asked more than {MAX_ROUNDS} questions")), now);
        } else {
            self.status = Status::InputRequired;
            self.deadline_at = now + settings.answer_time;
        }
        (self.question, self.question_id) = (Some(question), id);
        true
    }

    /// Ends the task, if its time is up. Returns whether it did.
    pub(crate) fn time_out(&mut self, now: DateTime<Utc>) -> bool {
        if now < self.deadline_at || self.status.is_final() || self.status == Status::TimedOut {
            return false;
        }
        let why = match self.status {
            Status::InputRequired => "the agent's question was not answered in time",
            _ => "the agent did not finish in time; a later reply is added to this record",
        };
        self.status = Status::TimedOut;
        (self.error, self.ended_at) = (Some(why.into()), Some(now));
        true
    }

    /// Stops waiting for a late reply, if the time for it is over. Returns whether it did.
    pub(crate) fn give_up(&mut self, now: DateTime<Utc>, settings: &Settings) -> bool {
        let is_over = self.remote_task_id.is_none() || now >= self.deadline_at + settings.keep_late;
        let gives_up = self.status == Status::TimedOut && !self.given_up && is_over;
        self.given_up |= gives_up;
        gives_up
    }

    pub(crate) fn end(&mut self, status: Status, error: Option<String>, now: DateTime<Utc>) {
        self.late = self.status == Status::TimedOut;
        self.status = status;
        (self.error, self.ended_at) = (error, Some(now));
    }
}

impl TaskResult {
    fn of<'p>(groups: impl Iterator<Item = &'p [Part]>) -> Self {
        let mut result = Self::default();
        let mut texts = Vec::new();
        let mut bytes = 0;
        for part in groups.flatten() {
            match part.content() {
                Some(PartContent::Text(text)) => texts.push(text),
                Some(PartContent::Data(data)) => {
                    bytes += data.to_string().len();
                    if bytes <= MAX_DATA {
                        result.data.push(cleaned(data));
                    } else {
                        result.is_cut = true;
                    }
                }
                Some(PartContent::Url(url)) => result.add_file(json!({"url": line(url, 2000)}), part),
                Some(PartContent::Raw(raw)) => result.add_file(json!({"base64_chars": raw.len()}), part),
                None => {}
            }
        }
        let text = texts.join("\n");
        result.is_cut |= text.chars().nth(MAX_TEXT).is_some();
        result.text = lines(&text, MAX_TEXT);
        result
    }

    fn add_file(&mut self, mut file: Value, part: &Part) {
        if self.files.len() == 20 {
            self.is_cut = true;
            return;
        }
        if let Some(name) = &part.filename {
            file["name"] = line(name, 200).into();
        }
        if let Some(media) = &part.media_type {
            file["media_type"] = line(media, 100).into();
        }
        self.files.push(file);
    }
}

/// A value of a stranger without control characters in its texts.
fn cleaned(value: &Value) -> Value {
    match value {
        Value::String(text) => lines(text, MAX_TEXT).into(),
        Value::Array(items) => items.iter().map(cleaned).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (line(key, 200), cleaned(value))).collect())
        }
        other => other.clone(),
    }
}

pub(crate) fn text_of(parts: &[Part]) -> String {
    parts.iter().filter_map(|part| part.text.as_deref()).collect::<Vec<_>>().join("\n")
}

/// An id of the agent: it is sent back as it is, so one that is too long cannot be used.
pub(crate) fn short_id(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(500).collect()
}
