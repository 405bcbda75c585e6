//! The routes of pictures and documents of events.

use serde_json::{Value, json};

use engine::domain::sale::event::EventAbout;
use shared::http::pictures::{MAX_PICTURE_BODY_BYTES, PictureBody, PictureReply};
use shared::http::respond::IMMUTABLE;

use super::operations::{Body, JSON, NOT_KEPT, Operation, Success};
use super::operators::by_token;
use super::{Schemas, examples};

fn file() -> Value {
    json!({ "type": "string", "contentMediaType": "image/jpeg", "contentEncoding": "binary" })
}

pub(super) fn show() -> Operation {
    Operation {
        id: "showPicture",
        tag: "sales",
        summary: "Show a picture of an event",
        description: "A JPEG file, by its SHA-256. It never changes.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The picture.",
            caching: &[IMMUTABLE],
            media_type: "image/jpeg",
            schema: |_| file(),
            examples: Vec::new,
        },
    }
}

pub(super) fn keep() -> Operation {
    Operation {
        id: "keepPicture",
        tag: "sales",
        summary: "Keep a picture of an event",
        description: "Before the sale that names it is published. The path has the SHA-256 of the file. The server reads \
                      its header alone: whoever sends it has written it anew, without metadata. Repeating the request \
                      changes nothing.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<PictureBody>,
            most_bytes: MAX_PICTURE_BODY_BYTES,
            examples: || vec![("grey", "Eight by eight grey pixels", examples::picture_body())],
        }),
        success: Success {
            status: 200,
            description: "The picture, as a sale file names it.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<PictureReply>,
            examples: || vec![("grey", "Eight by eight grey pixels", examples::picture())],
        },
    }
}

pub(super) fn keep_as_operator() -> Operation {
    by_token("operatorKeepPicture", keep())
}

pub(super) fn show_document() -> Operation {
    Operation {
        id: "showDocument",
        tag: "sales",
        summary: "Show the document of an event",
        description: "What people want to know of it besides when and where, by the SHA-256 of the document: \
                      `event.about` of the sale. It never changes.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The document.",
            caching: &[IMMUTABLE],
            media_type: JSON,
            schema: Schemas::written::<EventAbout>,
            examples: || vec![("concert", "A concert", examples::about())],
        },
    }
}
