//! The targets, one a file.

mod admission_token;
mod alipay_message;
mod challenge_answer;
mod gtfs_feed;
mod hold_record;
mod identity_token;
mod lambda_event;
mod names;
mod payment_callback;
mod planted_defect;
mod queue_message;
mod request;
mod sale_file;
mod script_reply;
mod seating_plan;
mod ticket_code;
mod train_tables;
mod wechat_message;

pub(crate) use admission_token::ADMISSION_TOKEN;
pub(crate) use alipay_message::ALIPAY_MESSAGE;
pub(crate) use challenge_answer::CHALLENGE_ANSWER;
pub(crate) use gtfs_feed::GTFS_FEED;
pub(crate) use hold_record::HOLD_RECORD;
pub(crate) use identity_token::IDENTITY_TOKEN;
pub(crate) use lambda_event::LAMBDA_EVENT;
pub(crate) use names::NAMES;
pub(crate) use payment_callback::PAYMENT_CALLBACK;
pub(crate) use planted_defect::PLANTED_DEFECT;
pub(crate) use queue_message::QUEUE_MESSAGE;
pub(crate) use request::REQUEST;
pub(crate) use sale_file::SALE_FILE;
pub(crate) use script_reply::SCRIPT_REPLY;
pub(crate) use seating_plan::SEATING_PLAN;
pub(crate) use ticket_code::TICKET_CODE;
pub(crate) use train_tables::TRAIN_TABLES;
pub(crate) use wechat_message::WECHAT_MESSAGE;
