#!/bin/sh
# Creates the database and its ordinary user; see docs/operations.md, "A Postgres of your own".
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$(cat /credentials/database/password)" --username postgres <<'SQL'
CREATE ROLE rcrt LOGIN PASSWORD :'password';
CREATE ROLE rcrt_app NOLOGIN;
GRANT rcrt_app TO rcrt WITH ADMIN OPTION;
CREATE DATABASE rcrt OWNER rcrt;
\connect rcrt
CREATE EXTENSION vector;
SQL
