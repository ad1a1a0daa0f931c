-- What RCRT's clients say a secret is for. Labels: kept and told, they open nothing and close nothing.
ALTER TABLE secrets ADD COLUMN scope_type text, ADD COLUMN scope_id uuid;
