//! Forms by the paths in a container.

use super::{Candidate, Unit};
use crate::archive::Container::{self, Ar, Tar, Zip};
use crate::recognition::form::Form;
use assay_schemas::ArtifactType as Type;

fn form(container: Container, hint: Type, paths: &[&str]) -> Form {
    let mut unit = Unit::new(container, hint);
    for path in paths {
        unit.observe(path, Candidate::of(container, path, "", hint));
    }
    unit.form()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn table() {
    let cases: [(Container, Type, &[&str], Form); 57] = [
        (
            Tar,
            Type::Tgz,
            &["package/package.json", "package/a.js"],
            Form::NpmPackage,
        ),
        (Tar, Type::Tgz, &["node/package.json"], Form::NpmPackage),
        (Tar, Type::TarGz, &["proj-1/package.json"], Form::Archive),
        (
            Tar,
            Type::Tgz,
            &["nginx/Chart.yaml", "nginx/values.yaml"],
            Form::HelmChart,
        ),
        (
            Tar,
            Type::TarGz,
            &["requests-2.19.1/PKG-INFO", "requests-2.19.1/setup.py"],
            Form::PythonSdist,
        ),
        (Tar, Type::Crate, &["time-0.1.43/Cargo.toml"], Form::RustCrate),
        (
            Tar,
            Type::Unknown,
            &["time-0.1.43/Cargo.toml", "time-0.1.43/Cargo.toml.orig"],
            Form::RustCrate,
        ),
        (Tar, Type::TarGz, &["proj/Cargo.toml"], Form::Archive),
        (
            Tar,
            Type::Gem,
            &["metadata.gz", "data.tar.gz", "checksums.yaml.gz"],
            Form::RubyGem,
        ),
        (
            Tar,
            Type::Apk,
            &[".SIGN.RSA.x", ".PKGINFO", "usr/bin/x"],
            Form::AlpinePackage,
        ),
        (
            Tar,
            Type::TarGz,
            &["MANIFEST.json", "FILES.json"],
            Form::AnsibleCollection,
        ),
        (
            Tar,
            Type::TarGz,
            &["pubspec.yaml", "lib/http.dart"],
            Form::PubPackage,
        ),
        (Tar, Type::Whl, &["a"], Form::PythonWheel),
        (
            Zip,
            Type::Whl,
            &["Jinja2-2.11.2.dist-info/METADATA"],
            Form::PythonWheel,
        ),
        (
            Zip,
            Type::Zip,
            &[
                "golang.org/x/text@v0.14.0/go.mod",
                "golang.org/x/text@v0.14.0/a.go",
            ],
            Form::GoModule,
        ),
        (
            Zip,
            Type::Zip,
            &["golang.org/x/text@v0.14.0/go.mod", "other"],
            Form::Archive,
        ),
        (
            Zip,
            Type::Nupkg,
            &["Newtonsoft.Json.nuspec", "lib/a.dll"],
            Form::NugetPackage,
        ),
        (Zip, Type::Zip, &["META-INF/MANIFEST.MF"], Form::JavaArchive),
        (
            Zip,
            Type::Apk,
            &["AndroidManifest.xml", "classes.dex"],
            Form::AndroidPackage,
        ),
        (
            Zip,
            Type::Aar,
            &["AndroidManifest.xml", "classes.jar"],
            Form::AndroidLibrary,
        ),
        (
            Zip,
            Type::Zip,
            &["console-1/composer.json"],
            Form::ComposerPackage,
        ),
        (Zip, Type::Zip, &["readme"], Form::Archive),
        (
            Zip,
            Type::Zip,
            &["package/package.json", "package/a.js"],
            Form::NpmPackage,
        ),
        (
            Zip,
            Type::Zip,
            &["lodash-4.17.4/package.json", "lodash-4.17.4/lib/a.js"],
            Form::NpmPackage,
        ),
        (
            Zip,
            Type::Zip,
            &["package/package.json", "other/a.js"],
            Form::Archive,
        ),
        (Zip, Type::Zip, &["project/package.json"], Form::Archive),
        (
            Zip,
            Type::Zip,
            &["console-1.0/package.json", "console-1.0/composer.json"],
            Form::ComposerPackage,
        ),
        (
            Tar,
            Type::TarBz2,
            &["info/index.json", "lib/a.so"],
            Form::CondaPackage,
        ),
        (
            Tar,
            Type::Tgz,
            &["info/index.json", "package/package.json"],
            Form::NpmPackage,
        ),
        (Tar, Type::TarBz2, &["a/info/index.json"], Form::Archive),
        (
            Zip,
            Type::Zip,
            &["metadata.json", "info-a-1-0.tar.zst", "pkg-a-1-0.tar.zst"],
            Form::CondaPackage,
        ),
        (
            Zip,
            Type::Zip,
            &["metadata.json", "info-.tar.zst", "pkg-.tar.zst"],
            Form::Archive,
        ),
        (Zip, Type::Zip, &["info/index.json"], Form::Archive),
        (
            Ar,
            Type::Unknown,
            &["debian-binary", "control.tar.xz"],
            Form::DebPackage,
        ),
        (Ar, Type::Unknown, &["a.o"], Form::Archive),
        (
            Zip,
            Type::Zip,
            &["a.invalid/x@v1.0.0/go.mod", "a.invalid/y@v1.1.0/go.mod"],
            Form::GoModule,
        ),
        (
            Tar,
            Type::Tar,
            &["VERSION", "CHECKSUM", "metadata.config", "contents.tar.gz"],
            Form::HexPackage,
        ),
        (Tar, Type::Tar, &["metadata.config"], Form::Archive),
        (
            Tar,
            Type::TarGz,
            &["zoo/DESCRIPTION", "zoo/NAMESPACE", "zoo/R/zoo.R"],
            Form::RPackage,
        ),
        (
            Zip,
            Type::Zip,
            &["zoo/DESCRIPTION", "zoo/Meta/package.rds"],
            Form::RPackage,
        ),
        (Tar, Type::TarGz, &["zoo/DESCRIPTION", "zoo/a.c"], Form::Archive),
        (
            Tar,
            Type::TarGz,
            &["zoo/DESCRIPTION", "other/R/zoo.R"],
            Form::Archive,
        ),
        (
            Zip,
            Type::Zip,
            &["terraform-provider-aws_v4.0.0_x5", "README.md"],
            Form::TerraformProvider,
        ),
        (
            Tar,
            Type::TarGz,
            &["main.tf", "variables.tf"],
            Form::TerraformModule,
        ),
        (Zip, Type::Zip, &["vpc-1.0/main.tf.json"], Form::TerraformModule),
        (Zip, Type::Zip, &["a/main.tf", "b/main.tf"], Form::Archive),
        (Zip, Type::Zip, &["a/infra/main.tf"], Form::Archive),
        (
            Zip,
            Type::Zip,
            &["Alamofire/Package.swift", "Alamofire/Alamofire.podspec"],
            Form::SwiftPackage,
        ),
        (Zip, Type::Zip, &["a-1/A.podspec", "a-1/A.m"], Form::CocoaPod),
        (Tar, Type::TarGz, &["A.podspec.json"], Form::CocoaPod),
        (Tar, Type::Tgz, &["conaninfo.txt", "lib/a.a"], Form::ConanPackage),
        (
            Tar,
            Type::Tgz,
            &["conanfile.py", "conandata.yml"],
            Form::ConanPackage,
        ),
        (Tar, Type::Tgz, &["conanfile.py", "src/a.c"], Form::Archive),
        (Tar, Type::Tar, &["a-1/composer.json"], Form::ComposerPackage),
        (
            Tar,
            Type::TarGz,
            &["role/meta/main.yml", "role/tasks/main.yml"],
            Form::AnsibleRole,
        ),
        (Tar, Type::TarGz, &["role/meta/main.yml"], Form::Archive),
        (
            Tar,
            Type::Tgz,
            &["package/package.json", "package/Package.swift"],
            Form::NpmPackage,
        ),
    ];
    for (container, hint, paths, want) in cases {
        assert_eq!(form(container, hint, paths), want, "{paths:?}");
    }
}
