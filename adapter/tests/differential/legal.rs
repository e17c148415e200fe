//! What real tools make passes the gate, and the gate sees in it what Syft's readers see.

use crate::listing::{first_difference, ours, theirs};
use crate::reader::Reader;
use crate::recipe::Recipe;
use crate::tree::Tree;
use crate::{compressors, packagers, tars, zips};
use std::sync::Mutex;

#[test]
fn zips_of_real_tools_are_listed_alike() {
    assert_alike(&zips::recipes());
}

#[test]
fn tars_of_real_tools_are_listed_alike() {
    assert_alike(&tars::recipes());
}

#[test]
fn compressed_files_of_real_tools_are_listed_alike() {
    assert_alike(&compressors::recipes());
}

#[test]
fn packages_of_real_tools_are_listed_alike() {
    assert_alike(&packagers::recipes());
}

/// Makes and compares every archive, two at a time.
fn assert_alike(recipes: &[Recipe]) {
    let archives: Vec<_> = recipes
        .iter()
        .flat_map(|recipe| recipe.trees.iter().map(move |tree| (recipe, *tree)))
        .collect();
    let count = archives.len();
    let queue = Mutex::new(archives.into_iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reader = Reader::start();
                loop {
                    let Some((recipe, tree)) = queue.lock().unwrap().next() else {
                        break;
                    };
                    if let Some(difference) = difference(&mut reader, recipe, tree) {
                        let text = format!("{tree:?}: {}\n    {difference}", recipe.script);
                        wrong.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    println!("{count} archives");
    assert!(
        wrong.is_empty(),
        "{} of {count} archives:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn difference(reader: &mut Reader, recipe: &Recipe, tree: Tree) -> Option<String> {
    let archive = match recipe.make(tree) {
        Ok(archive) => archive,
        Err(said) => return Some(said),
    };
    let ours = match ours(recipe.suffix, &archive, recipe.profile) {
        Ok(ours) => ours,
        Err(refusal) => return Some(format!("refused: {refusal}")),
    };
    let theirs = theirs(reader, recipe.suffix, &archive);
    if !theirs.error.is_empty() {
        return Some(format!("the other reader failed: {}", theirs.error));
    }
    if ours.entries.is_empty() {
        return Some("nothing was seen".to_owned());
    }
    first_difference(&ours.entries, &theirs.entries)
}
