//! Embeds the migrations into the program: a list of number, name, text, and whether it runs
//! outside of a transaction, for each file of `migrations/`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../../migrations").canonicalize()?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut paths =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    let mut list = String::from("[\n");
    for path in paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let named = stem.split_once('_').and_then(|(number, name)| Some((number.parse::<i64>().ok()?, name)));
        let Some((number, name)) = named.filter(|_| path.extension().is_some_and(|extension| extension == "sql"))
        else {
            return Err(
                format!("{} is not a valid migration name; expected <number>_<name>.sql", path.display()).into()
            );
        };
        let alone = fs::read_to_string(&path)?.starts_with("-- no-transaction");
        let (name, path) = (name.replace('_', " "), path.to_str().ok_or("the folder's path is not UTF-8")?.to_owned());
        writeln!(list, "    ({number}, {name:?}, include_str!({path:?}), {alone}),")?;
    }
    list.push_str("]\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("migrations.rs"), list)?;
    Ok(())
}
