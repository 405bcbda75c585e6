//! The page where somebody signs in: a form without any script.

use crate::Realm;
use crate::authorize::{Authorization, REPEATED};
use crate::realm::{OPERATE, REFUND, SCAN, WATCH};

const STYLE: &str = "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;\
    padding:0 1rem}label{display:block;margin:.5rem 0}input[type=text]{display:block;width:100%;\
    box-sizing:border-box;font:inherit;padding:.5rem}button{font:inherit;padding:.5rem 1.2rem}";

/// Text as it stands in HTML, in an attribute too.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn document(title: &str, main: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style><main><h1>{title}</h1>{main}</main></html>"
    )
}

/// The page of a request that nobody is sent back from.
pub(crate) fn refused(why: &str) -> String {
    document("You cannot sign in here", &format!("<p role=\"alert\">{}</p>", escaped(why)))
}

/// The form. `is_wrong` if the name that was sent could not be one.
pub(crate) fn form(request: &Authorization, is_wrong: bool) -> String {
    let hidden: String = REPEATED
        .iter()
        .map(|name| {
            let value = escaped(request.given(name));
            format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">")
        })
        .collect();
    let alert = if is_wrong {
        "<p role=\"alert\" id=\"wrong\">A name has 1 to 128 characters, without blanks at its ends.</p>"
    } else {
        ""
    };
    let (title, scopes) = match request.realm {
        Realm::Buyers => ("Sign in", String::new()),
        Realm::Operators => ("Sign in as an operator", scopes(request)),
    };
    let form = format!(
        "<p>These accounts are for trying things out on this machine: there is no password.</p>{alert}\
         <form method=\"post\">{hidden}\
         <label for=\"name\">Name</label>\
         <input type=\"text\" id=\"name\" name=\"name\" required maxlength=\"128\" autofocus \
         autocomplete=\"username\">{scopes}\
         <p><button name=\"action\" value=\"sign-in\">Sign in</button> \
         <button name=\"action\" value=\"leave\" formnovalidate>Leave</button></p></form>"
    );
    document(title, &form)
}

fn scopes(request: &Authorization) -> String {
    let boxes: String = request
        .offered()
        .map(|scope| {
            let about = about(scope);
            format!(
                "<label><input type=\"checkbox\" name=\"chosen\" value=\"{scope}\" checked> \
                 {about} (<code>{scope}</code>)</label>"
            )
        })
        .collect();
    format!("<fieldset><legend>What you may do</legend>{boxes}</fieldset>")
}

fn about(scope: &str) -> &'static str {
    match scope {
        WATCH => "Watch sales and look at orders",
        OPERATE => "Publish sales, run rooms, cancel orders",
        REFUND => "Refund paid orders",
        SCAN => "Check tickets at a door",
        _ => "Something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_never_markup() {
        let text = escaped("\"><script>alert('&')</script>");
        assert_eq!(text, "&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;");
    }
}
