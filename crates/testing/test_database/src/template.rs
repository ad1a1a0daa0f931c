use std::path::Path;

use rcrt_postgres::Postgres;
use sqlx::migrate::Migrator;
use sqlx::{Connection, PgConnection};

use crate::{APP_ROLE, execute};

pub(crate) const NAME: &str = "migrated";

/// Creates the template of all test databases. The migrations are read when the tests run, so that
/// a new one does not cause a build.
pub(crate) async fn build(postgres: &Postgres) {
    execute(postgres, &format!("CREATE DATABASE {NAME}")).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../migrations");
    let migrations = Migrator::new(folder).await.expect("the migrations");
    let mut connection = PgConnection::connect(&postgres.url(rcrt_postgres::SUPERUSER, NAME))
        .await
        .expect("a connection to the template");
    migrations.run(&mut connection).await.expect("the migrations to apply");
    connection.close().await.expect("the connection to close");
    // The migrations do not set how the role logs in. The operator of a server does.
    execute(postgres, &format!("ALTER ROLE {APP_ROLE} LOGIN")).await;
}
