//! Stops a build whose cold starts would each spend 30 ms on gathering jitter (docs/cold-start.md);
//! nothing else would show it.

const _: () = {
    let variable = env!(
        "AWS_LC_SYS_NO_JITTER_ENTROPY",
        "build inside the repository, where .cargo/config.toml sets it, or set it to 1"
    );
    let is_one = matches!(variable.as_bytes(), b"1");
    assert!(is_one, "AWS_LC_SYS_NO_JITTER_ENTROPY must be 1");
};
