//! JSON objects are read from JSON objects alone.
//!
//! What serde derives for a struct also takes a JSON array of its fields in their order: `[2]` would
//! be a request for two tickets. [`Objects`] reads any type as it is, except that each struct in it,
//! however deep, must be an object.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// A deserializer, or a part of one, that takes objects alone where a struct is expected.
#[derive(Debug)]
pub struct Objects<T>(pub T);

/// Passes the methods of a deserializer on, with the visitor wrapped.
macro_rules! pass_on {
    ($($method:ident($($argument:ident: $kind:ty),*)),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($argument,)* Objects(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    /// The one difference: the parser is asked for a map, and refuses a list by itself.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Fields(visitor))
    }

    pass_on! {
        deserialize_any(), deserialize_bool(), deserialize_i8(), deserialize_i16(),
        deserialize_i32(), deserialize_i64(), deserialize_i128(), deserialize_u8(),
        deserialize_u16(), deserialize_u32(), deserialize_u64(), deserialize_u128(),
        deserialize_f32(), deserialize_f64(), deserialize_char(), deserialize_str(),
        deserialize_string(), deserialize_bytes(), deserialize_byte_buf(), deserialize_option(),
        deserialize_unit(), deserialize_unit_struct(name: &'static str),
        deserialize_newtype_struct(name: &'static str), deserialize_seq(),
        deserialize_tuple(len: usize), deserialize_tuple_struct(name: &'static str, len: usize),
        deserialize_map(), deserialize_identifier(), deserialize_ignored_any(),
        deserialize_enum(name: &'static str, variants: &'static [&'static str]),
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// The visitor of a struct: of all that JSON has, it takes an object.
struct Fields<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Fields<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Objects(map))
    }
}

/// Passes the methods of a visitor on that are given a plain value.
macro_rules! pass_on_values {
    ($($method:ident($value:ty)),* $(,)?) => {
        $(fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Objects<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    pass_on_values! {
        visit_bool(bool), visit_i64(i64), visit_i128(i128), visit_u64(u64), visit_u128(u128),
        visit_f64(f64), visit_char(char), visit_str(&str), visit_borrowed_str(&'de str),
        visit_string(String), visit_bytes(&[u8]), visit_borrowed_bytes(&'de [u8]),
        visit_byte_buf(Vec<u8>),
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Objects(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Objects(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Objects(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(value))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Objects<A> {
    type Error = A::Error;
    type Variant = Objects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, content) = self.0.variant_seed(seed)?;
        Ok((name, Objects(content)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Objects(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Fields(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(expecting = "a point, which is an object")]
    struct Point {
        x: u8,
        y: u8,
    }

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Wrapped(Point);

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Shape {
        Dot,
        At(Point),
        From { start: Point },
    }

    fn read<'text, T: Deserialize<'text>>(text: &'text str) -> Result<T, String> {
        let mut parser = serde_json::Deserializer::from_str(text);
        let read = T::deserialize(Objects(&mut parser)).map_err(|error| error.to_string())?;
        parser.end().map_err(|error| error.to_string())?;
        Ok(read)
    }

    const POINT: Point = Point { x: 1, y: 2 };
    const OBJECT: &str = r#"{"x":1,"y":2}"#;

    #[test]
    fn a_list_is_no_object_however_deep_it_lies() {
        // The guard taken away: what serde does by itself.
        assert_eq!(serde_json::from_str::<Point>("[1,2]").unwrap(), POINT);

        let refused = read::<Point>("[1,2]").unwrap_err();
        assert!(refused.contains("expected a point, which is an object"), "{refused}");
        assert!(read::<Vec<Point>>(&format!("[{OBJECT},[1,2]]")).is_err());
        assert!(read::<Option<Point>>("[1,2]").is_err());
        assert!(read::<BTreeMap<String, Point>>(r#"{"a":[1,2]}"#).is_err());
        assert!(read::<Wrapped>("[1,2]").is_err());
        assert!(read::<(u8, Point)>("[1,[1,2]]").is_err());
        assert!(read::<Shape>(r#"{"at":[1,2]}"#).is_err());
        assert!(read::<Shape>(r#"{"from":[[1,2]]}"#).is_err());
        assert!(read::<Shape>(r#"{"from":{"start":[1,2]}}"#).is_err());
    }

    #[test]
    fn everything_else_is_read_as_it_is() {
        assert_eq!(read(OBJECT), Ok(POINT));
        assert_eq!(read(&format!("[{OBJECT}]")), Ok(vec![POINT]));
        assert_eq!(read::<Option<Point>>("null"), Ok(None));
        assert_eq!(read(OBJECT), Ok(Some(POINT)));
        assert_eq!(
            read(&format!("{{\"a\":{OBJECT}}}")),
            Ok(BTreeMap::from([("a".to_owned(), POINT)]))
        );
        assert_eq!(read(OBJECT), Ok(Wrapped(POINT)));
        assert_eq!(read(&format!("[7,{OBJECT}]")), Ok((7_u8, POINT)));
        assert_eq!(read(r#""dot""#), Ok(Shape::Dot));
        assert_eq!(read(&format!("{{\"at\":{OBJECT}}}")), Ok(Shape::At(POINT)));
        assert_eq!(
            read(&format!("{{\"from\":{{\"start\":{OBJECT}}}}}")),
            Ok(Shape::From { start: POINT })
        );
        assert_eq!(read("-3.5"), Ok(-3.5_f64));
        assert_eq!(read(r#""text""#), Ok("text".to_owned()));
        assert!(read::<Point>(r#"{"x":1,"x":1,"y":2}"#).unwrap_err().contains("duplicate field"));
    }
}
