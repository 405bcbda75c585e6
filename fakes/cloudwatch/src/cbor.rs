//! CBOR (RFC 8949) as the SDKs of AWS write it and want it, as JSON values: a time is its seconds since 1970.

use minicbor::data::{IanaTag, Tag, Type};
use minicbor::decode::{Decoder, Error};
use minicbor::encode::Encoder;
use serde_json::{Map, Value, json};

/// The name of the list whose numbers are times.
const TIMES: &str = "Timestamps";
/// Most values within each other.
const MAX_DEPTH: u8 = 16;

/// Reads one value.
///
/// # Errors
/// Says where it is not one, or not of a kind that a request has.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, Error> {
    value(&mut Decoder::new(bytes), MAX_DEPTH)
}

fn value(decoder: &mut Decoder<'_>, depth: u8) -> Result<Value, Error> {
    let kind = decoder.datatype()?;
    let depth = depth.checked_sub(1).ok_or_else(|| Error::message("too deep"))?;
    let is = |kinds: &[Type]| kinds.contains(&kind);
    if is(&[Type::Map, Type::MapIndef]) {
        let mut map = Map::new();
        let mut left = decoder.map()?;
        while more(decoder, &mut left)? {
            let name = decoder.str()?.to_owned();
            map.insert(name, value(decoder, depth)?);
        }
        Ok(map.into())
    } else if is(&[Type::Array, Type::ArrayIndef]) {
        let mut list = Vec::new();
        let mut left = decoder.array()?;
        while more(decoder, &mut left)? {
            list.push(value(decoder, depth)?);
        }
        Ok(list.into())
    } else if is(&[Type::Tag]) {
        if decoder.tag()? != Tag::from(IanaTag::Timestamp) {
            return Err(Error::message("a tag that is no time"));
        }
        value(decoder, depth)
    } else if is(&[Type::String]) {
        Ok(json!(decoder.str()?))
    } else if is(&[Type::Bool]) {
        Ok(json!(decoder.bool()?))
    } else if is(&[Type::F32, Type::F64]) {
        Ok(json!(decoder.f64()?))
    } else {
        Ok(json!(decoder.i64()?))
    }
}

/// True if a list or a map goes on; of one without a length the end is read.
fn more(decoder: &mut Decoder<'_>, left: &mut Option<u64>) -> Result<bool, Error> {
    if let Some(left) = left {
        let goes_on = *left > 0;
        *left = left.saturating_sub(1);
        return Ok(goes_on);
    }
    let ends = decoder.datatype()? == Type::Break;
    if ends {
        decoder.skip()?;
    }
    Ok(!ends)
}

pub(crate) fn written(value: &Value) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    // Memory takes whatever is written.
    let _never_fails = write(&mut encoder, value, false);
    encoder.into_writer()
}

type Written = Result<(), minicbor::encode::Error<std::convert::Infallible>>;

fn write(encoder: &mut Encoder<Vec<u8>>, value: &Value, is_time: bool) -> Written {
    match value {
        Value::Null => encoder.null()?.ok(),
        Value::Bool(value) => encoder.bool(*value)?.ok(),
        Value::Number(number) => {
            if is_time {
                encoder.tag(IanaTag::Timestamp)?;
            }
            encoder.f64(number.as_f64().unwrap_or_default())?.ok()
        }
        Value::String(text) => encoder.str(text)?.ok(),
        Value::Array(list) => {
            encoder.begin_array()?;
            list.iter().try_for_each(|value| write(encoder, value, is_time))?;
            encoder.end()?.ok()
        }
        Value::Object(map) => {
            encoder.begin_map()?;
            for (name, value) in map {
                encoder.str(name)?;
                write(encoder, value, name == TIMES)?;
            }
            encoder.end()?.ok()
        }
    }
}
