-- All tables. Ids are text with a prefix, amounts nano-dollars, times epoch milliseconds. Every column is TEXT or BIGINT, so
-- that the two engines hold the same values.

-- Facts about this installation, such as the check of the master secret.
CREATE TABLE installation (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

-- Tenants: workspaces pay, projects group, keys authenticate.

-- What some workspaces pay instead of the catalog's prices.
CREATE TABLE price_lists (
  name TEXT PRIMARY KEY,
  -- Added to the catalog's price of every model without a price in the list, in hundredths of a percent. Below 0 = a discount.
  markup BIGINT NOT NULL CHECK (markup > -10000),
  set_at BIGINT NOT NULL
);

CREATE TABLE workspaces (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- JSON, names as in the management API, amounts as decimal strings of nano-dollars; NULL = no limit.
  limits TEXT,
  -- Who may change it: 'api' (the management token) or 'file' (the configuration file).
  managed_by TEXT NOT NULL DEFAULT 'api',
  -- Whether a workspace with its own credential for a provider may fall back to routes that use the operator's.
  shares_routes BIGINT NOT NULL DEFAULT 0 CHECK (shares_routes IN (0, 1)),
  -- NULL = the prices of the catalog.
  price_list TEXT REFERENCES price_lists (name),
  -- Hashes the ids of end users. NULL = erased; no end user is recorded.
  end_user_salt TEXT
);

-- People. Only the hash of a password is stored, and only for people who have one.
CREATE TABLE people (
  id TEXT PRIMARY KEY,
  -- In lower case.
  email TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  -- Argon2id; NULL = signs in with the identity provider only.
  password_hash TEXT,
  -- Issuer and subject at the identity provider; NULL = never signed in with it.
  oidc_subject TEXT UNIQUE,
  -- JSON array: the groups that the identity provider named at the last sign-in; NULL = it named none.
  idp_groups TEXT,
  created_at BIGINT NOT NULL
);

-- A person's role in a workspace; without a workspace, the person is an operator.
CREATE TABLE members (
  id TEXT PRIMARY KEY,
  person_id TEXT NOT NULL REFERENCES people (id),
  workspace_id TEXT REFERENCES workspaces (id),
  role TEXT NOT NULL CHECK (role IN ('operator', 'admin', 'member', 'viewer')),
  -- 'invitation', 'sign-up', or 'claim': set by the identity provider at every sign-in.
  source TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  CHECK ((workspace_id IS NULL) = (role = 'operator'))
);

CREATE UNIQUE INDEX members_by_person ON members (person_id, COALESCE(workspace_id, ''));
CREATE INDEX members_by_workspace ON members (workspace_id, id);

-- Links that work once: invitations, and links to set a new password. Only the hash of the secret in the link.
CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  email TEXT NOT NULL,
  -- NULL with the role operator.
  workspace_id TEXT REFERENCES workspaces (id),
  -- NULL = a link to set a new password.
  role TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);

CREATE INDEX invitations_by_email ON invitations (email);

-- Personal management tokens. 256 random bits, so that the hash cannot be reversed.
CREATE TABLE management_tokens (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  person_id TEXT NOT NULL REFERENCES people (id),
  workspace_id TEXT REFERENCES workspaces (id),
  role TEXT NOT NULL,
  name TEXT NOT NULL,
  last4 TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);

CREATE INDEX management_tokens_by_person ON management_tokens (person_id, id);

CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  -- JSON array of model ids and prefix/* patterns; NULL = all models.
  models TEXT,
  -- JSON object of further names: name to model id; NULL = none.
  aliases TEXT,
  created_at BIGINT NOT NULL,
  limits TEXT,
  managed_by TEXT NOT NULL DEFAULT 'api',
  -- When a project that was used was deleted; its keys are refused from then on. NULL = in use.
  archived_at BIGINT
);

CREATE INDEX projects_by_workspace ON projects (workspace_id, id);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  -- 'person': stands for a person who signs in, in this project. It has no secret; the tokens of the sign-ins lead to it.
  kind TEXT NOT NULL DEFAULT 'secret' CHECK (kind IN ('secret', 'person')),
  -- Of a person's key: the id of the person, so that no name has to be erased.
  name TEXT NOT NULL,
  -- HMAC-SHA256 of the key under the pepper, hex. The key itself is not stored. NULL = a person's.
  verifier TEXT UNIQUE,
  pepper_version BIGINT,
  last4 TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  limits TEXT,
  managed_by TEXT NOT NULL DEFAULT 'api',
  -- The key's own allowlist, in addition to its project's; NULL = all models that the project allows.
  models TEXT,
  -- JSON array of addresses and ranges it may be used from; NULL = anywhere.
  sources TEXT,
  -- The workspace of its project, which never changes; here so that one index lists the keys of a workspace.
  workspace_id TEXT REFERENCES workspaces (id),
  -- The person who created it; NULL = the installation. Not a reference: the id stays when the person is removed.
  owner_id TEXT,
  CHECK ((verifier IS NULL) = (kind = 'person') AND (pepper_version IS NULL) = (kind = 'person'))
);

CREATE INDEX api_keys_by_project ON api_keys (project_id, id);
CREATE INDEX api_keys_by_workspace ON api_keys (workspace_id, id);
CREATE INDEX api_keys_by_owner ON api_keys (owner_id, id);
CREATE UNIQUE INDEX api_keys_of_people ON api_keys (project_id, owner_id) WHERE kind = 'person' AND revoked_at IS NULL;

-- Named sets of people and keys of a workspace, which spend limits can name.
CREATE TABLE groups (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  managed_by TEXT NOT NULL DEFAULT 'api',
  UNIQUE (workspace_id, name)
);

CREATE TABLE group_members (
  group_id TEXT NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
  -- A person or a key. Not a reference: it is one of two tables.
  member_id TEXT NOT NULL,
  PRIMARY KEY (group_id, member_id)
);

CREATE INDEX group_members_by_member ON group_members (member_id);

-- Secrets that a rotation replaced. They stay, so that their refusal can say what happened to them.
CREATE TABLE rotated_secrets (
  verifier TEXT PRIMARY KEY,
  key_id TEXT NOT NULL REFERENCES api_keys (id),
  pepper_version BIGINT NOT NULL,
  rotated_at BIGINT NOT NULL,
  -- Not accepted from then on; the same as rotated_at = no overlap.
  ends_at BIGINT NOT NULL CHECK (ends_at >= rotated_at)
);

CREATE INDEX rotated_secrets_by_key ON rotated_secrets (key_id);

-- Separate from the keys, because it is written all the time and must not block readers of the keys.
CREATE TABLE key_uses (
  -- Or the id of a sign-in.
  key_id TEXT PRIMARY KEY,
  last_used_at BIGINT NOT NULL
);

-- Devices on which a person is signed in. Requests are those of the person's key.
CREATE TABLE sign_ins (
  id TEXT PRIMARY KEY,
  key_id TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
  -- The program: `claude_code`, `tollgate`.
  client TEXT NOT NULL,
  -- What the device calls itself.
  device TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- Not renewed from then on.
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT,
  -- SHA-256 of the 256 random bits in its refresh tokens. They also carry their generation, which only the newest has.
  refresh_hash TEXT NOT NULL UNIQUE,
  generation BIGINT NOT NULL,
  -- When the newest refresh token was issued, and until when it can be used.
  refreshed_at BIGINT NOT NULL,
  idle_expires_at BIGINT NOT NULL
);

CREATE INDEX sign_ins_by_key ON sign_ins (key_id, id);
CREATE INDEX sign_ins_by_person ON sign_ins (person_id, id);

-- Sign-ins that were started on a device and wait for a person (RFC 8628). The device holds one code, the person types the
-- other; neither is stored.
CREATE TABLE device_grants (
  id TEXT PRIMARY KEY,
  -- SHA-256 of the device code, which has 256 random bits.
  hash TEXT NOT NULL UNIQUE,
  -- HMAC-SHA256 of the code that people type.
  user_code TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'used')),
  client TEXT NOT NULL,
  device TEXT NOT NULL,
  -- Where it was started; NULL = unknown.
  address TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  -- How long the device has to wait between two polls, and when it polled last.
  interval_seconds BIGINT NOT NULL,
  polled_at BIGINT,
  -- The console session that opened it first; no other one can decide.
  session_id TEXT,
  -- Who approved it, and for which project.
  person_id TEXT REFERENCES people (id) ON DELETE CASCADE,
  project_id TEXT REFERENCES projects (id) ON DELETE CASCADE,
  CHECK ((person_id IS NOT NULL AND project_id IS NOT NULL) = (state IN ('approved', 'used')))
);

CREATE INDEX device_grants_by_expiry ON device_grants (expires_at);

-- What Claude Code gets as managed settings: all rules that match a person are merged, in this order.
CREATE TABLE managed_settings (
  position BIGINT PRIMARY KEY,
  -- NULL = every role, and every group of the identity provider or none.
  role TEXT,
  group_name TEXT,
  -- JSON object.
  settings TEXT NOT NULL,
  -- `api` or `file`, the same for all.
  managed_by TEXT NOT NULL
);

-- A workspace's own keys at providers, encrypted. The master secret that unwraps them is never in the database.
CREATE TABLE credentials (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  provider TEXT NOT NULL,
  -- Names this secret. A replacement gets a new id, so that what is known about the old secret does not apply to it.
  id TEXT NOT NULL UNIQUE,
  -- The only place the secret may be sent to: scheme, host, port.
  origin TEXT NOT NULL,
  -- NULL = the provider's usual address.
  base_url TEXT,
  ciphertext TEXT NOT NULL,
  -- The key of the ciphertext, encrypted under the master secret that key_version names.
  wrapped_key TEXT NOT NULL,
  key_version TEXT NOT NULL,
  last4 TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, provider)
);

-- Finds the credentials that a rotation of the master secret still has to re-encrypt.
CREATE INDEX credentials_by_key_version ON credentials (key_version, id);

-- Console sessions and unused one-time links, shared by all replicas. Only hashes of what the browser holds; the secrets
-- have 256 bits, so the hashes cannot be reversed.
CREATE TABLE console_sessions (
  hash TEXT PRIMARY KEY,
  opened_at BIGINT NOT NULL,
  -- Written up to some minutes late, so that a page view costs no write.
  used_at BIGINT NOT NULL,
  -- Of the management token under which it was opened; empty for a person's session.
  fingerprint TEXT NOT NULL,
  -- NULL = opened by the operator's link or the management token.
  person_id TEXT REFERENCES people (id),
  -- Names it in lists; the hash stays here.
  id TEXT NOT NULL UNIQUE,
  -- What the browser calls itself.
  client TEXT NOT NULL
);

CREATE INDEX console_sessions_by_person ON console_sessions (person_id);

CREATE TABLE console_links (
  hash TEXT PRIMARY KEY,
  expires_at BIGINT NOT NULL,
  fingerprint TEXT NOT NULL
);

-- The audit log. Every row carries the hash of the one before it; append-only.
CREATE TABLE audit (
  sequence BIGINT PRIMARY KEY,
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  -- The id of what was changed.
  object TEXT NOT NULL,
  -- JSON object: ids, numbers and settings; no secret, and no name that may have to be erased one day.
  details TEXT NOT NULL,
  request_id TEXT,
  previous_hash TEXT NOT NULL,
  hash TEXT NOT NULL
);

CREATE INDEX audit_by_object ON audit (object, sequence);

-- The end of the chain, one row. Appending locks it first, so that replicas cannot fork the chain.
CREATE TABLE audit_head (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  sequence BIGINT NOT NULL,
  hash TEXT NOT NULL
);

INSERT INTO audit_head (id, sequence, hash) VALUES (1, 0, '');

-- Alerts.

CREATE TABLE alerts (
  id TEXT PRIMARY KEY,
  -- What happened, so that it is raised once: a balance since a top-up, a limit in a window, a state of a provider.
  crossing TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  -- NULL = of the installation.
  workspace_id TEXT REFERENCES workspaces (id),
  message TEXT NOT NULL,
  -- JSON object, as webhooks send it.
  data TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE INDEX alerts_by_workspace ON alerts (workspace_id, id);

CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  -- NULL = of the installation: it gets the alerts of all workspaces.
  workspace_id TEXT REFERENCES workspaces (id),
  url TEXT NOT NULL,
  -- JSON array; NULL = all kinds.
  kinds TEXT,
  format TEXT NOT NULL CHECK (format IN ('standard', 'slack')),
  created_at BIGINT NOT NULL
);

-- When an alert is raised, and who gets it.
CREATE TABLE alert_rules (
  id TEXT PRIMARY KEY,
  -- NULL = of the installation: it watches all workspaces.
  workspace_id TEXT REFERENCES workspaces (id),
  kind TEXT NOT NULL,
  -- The balance below which the alert is raised.
  below BIGINT CHECK (below > 0),
  -- JSON array: percent of a spend limit, or of a bill.
  percents TEXT,
  -- The key, project or workspace whose limits are watched; NULL = all of them.
  scope_id TEXT,
  -- JSON arrays: who gets it.
  roles TEXT NOT NULL,
  emails TEXT NOT NULL,
  webhooks TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  CHECK ((kind = 'balance.low') = (below IS NOT NULL)),
  CHECK ((kind IN ('limit.reached', 'bill.differs')) = (percents IS NOT NULL))
);

CREATE INDEX alert_rules_by_kind ON alert_rules (kind, workspace_id, id);
CREATE INDEX alert_rules_by_workspace ON alert_rules (workspace_id, id);

INSERT INTO alert_rules (id, kind, percents, roles, emails, webhooks, created_at) VALUES
  ('rul_00000000000000000000000001', 'provider.down', NULL, '["operator"]', '[]', '[]', 0),
  ('rul_00000000000000000000000002', 'provider.stray', NULL, '["operator"]', '[]', '[]', 0),
  ('rul_00000000000000000000000003', 'price.changed', NULL, '["operator"]', '[]', '[]', 0),
  ('rul_00000000000000000000000004', 'bill.differs', '[2]', '["operator"]', '[]', '[]', 0);

CREATE TABLE deliveries (
  id TEXT PRIMARY KEY,
  alert_id TEXT NOT NULL REFERENCES alerts (id),
  -- One of the three: by webhook, or by e-mail to a person or an address.
  webhook_id TEXT REFERENCES webhooks (id),
  person_id TEXT REFERENCES people (id),
  email TEXT,
  -- The rule that names the address. Not a reference: the rule may be deleted.
  rule_id TEXT,
  attempts BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  -- When it is tried next; NULL = delivered or given up.
  next_at BIGINT,
  delivered_at BIGINT,
  -- Why the last attempt failed.
  error TEXT,
  CHECK ((webhook_id IS NOT NULL AND person_id IS NULL AND email IS NULL)
    OR (webhook_id IS NULL AND (person_id IS NULL) <> (email IS NULL)))
);

-- What each reader of alerts chose. The reader is a person's id, or 'installation'.
CREATE TABLE alert_readers (
  reader TEXT PRIMARY KEY,
  -- JSON array: the kinds that come by e-mail; NULL = as the rules say.
  kinds TEXT,
  -- The newest alert that was read.
  read_until TEXT NOT NULL
);

CREATE INDEX deliveries_due ON deliveries (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, id);

-- Prices.

-- Every price that was ever in force; charges name their version. Append-only.
CREATE TABLE prices (
  version TEXT PRIMARY KEY,
  model_id TEXT NOT NULL,
  -- JSON: pico-dollars per token and bucket, as decimal strings; tiers included.
  price TEXT NOT NULL,
  source TEXT NOT NULL,
  effective_from BIGINT NOT NULL
);

CREATE INDEX prices_by_model ON prices (model_id, effective_from);

-- Prices set through the management API. Each replaces the built-in price of its model, or the model's price in a list.
CREATE TABLE price_overrides (
  -- A name in price_lists; '' = the catalog.
  list TEXT NOT NULL,
  model_id TEXT NOT NULL,
  -- JSON, in the form of `prices`.
  price TEXT NOT NULL,
  set_at BIGINT NOT NULL,
  -- Where an update read it; NULL = set by hand, and updates leave it alone.
  updated_from TEXT,
  -- What the routes cost, where an update has the prices of providers.
  cost TEXT,
  PRIMARY KEY (list, model_id)
);

-- Money. Every amount that moves has a row with both accounts, so the books balance by construction, and no such row is ever
-- changed: a correction is another row. Charges are rows of `requests`, later of `archived_charges`; everything else is in
-- `fundings`. The view `transfers` shows all of them.

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('wallet', 'revenue', 'funding', 'grants', 'plans', 'writeoff')),
  -- Of wallets.
  workspace_id TEXT REFERENCES workspaces (id),
  created_at BIGINT NOT NULL
);

INSERT INTO accounts (id, kind, created_at)
  VALUES ('revenue', 'revenue', 0), ('funding', 'funding', 0), ('grants', 'grants', 0), ('plans', 'plans', 0),
    ('writeoff', 'writeoff', 0);

-- Wallets only: a running balance of the other accounts would be one hot row for all tenants. The upper bound keeps every
-- sum below 2^63, where SQLite would silently switch to floating point.
CREATE TABLE balances (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  posted BIGINT NOT NULL CHECK (posted >= 0 AND posted <= 9000000000000000000),
  held BIGINT NOT NULL CHECK (held >= 0),
  -- The part of `posted` that came from a plan and will expire: what remains of the workspace's `credits`. Not checked against
  -- `posted` here, because a charge changes the two one after the other; `verify` checks it.
  credit BIGINT NOT NULL DEFAULT 0 CHECK (credit >= 0),
  CHECK (posted - held >= 0)
);

-- Top-ups, grants, the credit of plans and what of it expired, and corrections. The accounts are not foreign keys, as in the other rows that move money; `verify` checks
-- them.
CREATE TABLE fundings (
  id TEXT PRIMARY KEY,
  -- 'writeoff': the part of a refund or dispute that the wallet did not have any more, or that came back.
  kind TEXT NOT NULL CHECK (kind IN ('topup', 'grant', 'plan_credit', 'expiry', 'correction', 'writeoff')),
  workspace_id TEXT NOT NULL,
  debit_account TEXT NOT NULL,
  credit_account TEXT NOT NULL CHECK (credit_account <> debit_account),
  amount BIGINT NOT NULL CHECK (amount >= 0 AND amount <= 1000000000000000),
  -- Free text of the person who funded or corrected.
  reference TEXT,
  -- The payment provider's id. One payment funds once, for ever.
  payment_id TEXT,
  created_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX fundings_by_payment ON fundings (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX fundings_by_workspace ON fundings (workspace_id, id);

-- What the operator sells: credit in every period, which expires.
CREATE TABLE plans (
  -- Chosen by the operator.
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  credit BIGINT NOT NULL CHECK (credit > 0 AND credit <= 1000000000000000),
  period TEXT NOT NULL CHECK (period IN ('day', 'week', 'month')),
  -- Credit expires so many days after it was granted; NULL = at the end of its period.
  expires_days BIGINT CHECK (expires_days BETWEEN 1 AND 366),
  -- What the operator charges for a period. NULL = not stated.
  price BIGINT CHECK (price >= 0 AND price <= 1000000000000000),
  created_at BIGINT NOT NULL
);

-- The plan of a workspace, if it has one.
CREATE TABLE workspace_plans (
  workspace_id TEXT PRIMARY KEY REFERENCES workspaces (id),
  -- Of the current period. NULL = the first period has not begun.
  plan_id TEXT REFERENCES plans (id),
  -- The current period. Both are 0 before the first one.
  starts_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  -- From the next period on. NULL = the plan ends then.
  next_plan_id TEXT REFERENCES plans (id)
);

CREATE INDEX workspace_plans_by_end ON workspace_plans (ends_at);

-- The plan that a workspace pays for at the payment provider, if there is one, as the provider last described it.
CREATE TABLE subscriptions (
  workspace_id TEXT PRIMARY KEY REFERENCES workspaces (id),
  -- The provider's.
  id TEXT NOT NULL UNIQUE,
  -- What the next payment is for. Not a foreign key: what was paid for is granted even if the plan was deleted.
  plan_id TEXT NOT NULL,
  credit BIGINT NOT NULL CHECK (credit > 0 AND credit <= 1000000000000000),
  price BIGINT NOT NULL CHECK (price >= 0),
  -- The provider's word: 'active', 'past_due', 'unpaid' …
  state TEXT NOT NULL,
  -- 1 = it ends with the period that is paid.
  is_ending BIGINT NOT NULL CHECK (is_ending IN (0, 1)),
  ends_at BIGINT NOT NULL
);

-- Payments of subscriptions. Each grants the credit of one period, once.
CREATE TABLE plan_payments (
  -- The provider's id of the invoice. One invoice grants once, for ever.
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  plan_id TEXT NOT NULL,
  paid BIGINT NOT NULL CHECK (paid >= 0),
  credit BIGINT NOT NULL CHECK (credit > 0 AND credit <= 1000000000000000),
  -- The period that was paid for.
  starts_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL CHECK (ends_at > starts_at),
  expires_days BIGINT CHECK (expires_days BETWEEN 1 AND 366),
  -- 1 = its credit was granted, or is not owed any more because the payment went back.
  is_granted BIGINT NOT NULL CHECK (is_granted IN (0, 1)),
  created_at BIGINT NOT NULL
);

CREATE INDEX plan_payments_by_workspace ON plan_payments (workspace_id, starts_at);
CREATE INDEX plan_payments_to_grant ON plan_payments (workspace_id) WHERE is_granted = 0;

-- Credit of plans and what remains of it.
CREATE TABLE credits (
  -- Of the transfer that granted it.
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  -- The period it was granted for, `month:2026-11`, or the payment: `invoice:in_…`.
  time_window TEXT NOT NULL,
  remaining BIGINT NOT NULL CHECK (remaining >= 0),
  expires_at BIGINT NOT NULL,
  -- One grant in a period, however often the clock passes its start.
  UNIQUE (workspace_id, time_window)
);

CREATE INDEX credits_open ON credits (workspace_id, expires_at, id) WHERE remaining > 0;
CREATE INDEX credits_by_expiry ON credits (expires_at) WHERE remaining > 0;

-- Which transfers took how much of a credit: charges, corrections and expiries.
CREATE TABLE credit_uses (
  credit_id TEXT NOT NULL,
  transfer_id TEXT NOT NULL,
  amount BIGINT NOT NULL CHECK (amount > 0),
  PRIMARY KEY (credit_id, transfer_id)
);

CREATE INDEX credit_uses_by_transfer ON credit_uses (transfer_id);

-- Payments at the payment provider: what was asked for, and what came of it. The money itself moves in `fundings`.
CREATE TABLE payments (
  -- In the provider's metadata and idempotency keys, so that a payment that was begun is found again.
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  kind TEXT NOT NULL CHECK (kind IN ('checkout', 'automatic')),
  -- What was asked for until it is paid, then what was paid.
  amount BIGINT NOT NULL CHECK (amount > 0),
  state TEXT NOT NULL CHECK (state IN ('open', 'paid', 'failed')),
  -- Its id in `fundings`: the checkout session, or the payment intent of an automatic one. NULL = not known yet.
  payment_id TEXT UNIQUE,
  payment_intent TEXT UNIQUE,
  -- Why it failed.
  failure TEXT,
  created_at BIGINT NOT NULL,
  -- Of automatic ones: when it is tried or looked at next. NULL = not any more.
  next_at BIGINT,
  -- Of automatic ones: how many times the provider was asked.
  attempts BIGINT NOT NULL DEFAULT 0,
  -- Idempotency keys that are used up: the provider repeats a server error under them.
  failed_keys BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX payments_by_workspace ON payments (workspace_id, id);
-- One at a time.
CREATE UNIQUE INDEX payments_automatic ON payments (workspace_id) WHERE kind = 'automatic' AND state = 'open';

-- Automatic top-ups, and the saved card.
CREATE TABLE auto_topups (
  workspace_id TEXT PRIMARY KEY REFERENCES workspaces (id),
  is_on BIGINT NOT NULL CHECK (is_on IN (0, 1)),
  -- Why it was turned off by the gateway.
  stopped TEXT,
  threshold BIGINT NOT NULL,
  amount BIGINT NOT NULL,
  month_max BIGINT NOT NULL,
  -- In a row.
  failures BIGINT NOT NULL DEFAULT 0,
  -- Ids at the payment provider, and what people recognise the card by; NULL = no card is saved.
  customer TEXT,
  payment_method TEXT,
  card TEXT,
  -- When the payment that saved it was begun: an older event does not replace it.
  card_at BIGINT NOT NULL DEFAULT 0
);

-- Refunds that an operator asked for here.
CREATE TABLE refunds (
  id TEXT PRIMARY KEY,
  payment_id TEXT NOT NULL REFERENCES payments (id),
  amount BIGINT NOT NULL CHECK (amount > 0),
  reason TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed')),
  failure TEXT,
  created_at BIGINT NOT NULL,
  next_at BIGINT,
  failed_keys BIGINT NOT NULL DEFAULT 0
);

-- Holds of replicas. The embedded database has none; its one process keeps them in memory.
CREATE TABLE holds (
  request_id TEXT PRIMARY KEY,
  wallet_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  amount BIGINT NOT NULL CHECK (amount >= 0),
  state TEXT NOT NULL CHECK (state IN ('open', 'settled', 'released', 'reaped')),
  owner TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  -- When the body went upstream; NULL = not yet.
  sent_at BIGINT,
  -- As in `requests`, so that the budgets get their amounts back when the hold ends.
  budgets TEXT
);

CREATE INDEX holds_open ON holds (request_id) WHERE state = 'open';
CREATE INDEX holds_ended ON holds (expires_at) WHERE state <> 'open';

-- Counters of spend limits: what a subject has spent and reserved in one day, week or month. The limit itself is not here.
-- It is compared when money is held, so that a changed limit applies at once.
CREATE TABLE budgets (
  -- Whose spend: `ws_…`, `prj_…/user:eu_…`, `ws_…/group:grp_…?acme/*`; see kernel/spend-limit.ts.
  scope_id TEXT NOT NULL,
  -- `day:2026-11-15`, `week:2026-11-09` (its Monday) or `month:2026-11`, UTC. (`window` is reserved in PostgreSQL.)
  time_window TEXT NOT NULL,
  spent BIGINT NOT NULL CHECK (spent >= 0),
  -- Always 0 in the embedded database.
  held BIGINT NOT NULL CHECK (held >= 0),
  -- The part of `spent` that was charged before there was a limit. `spent` less `seeded` is the sum of the charges that
  -- name the budget.
  seeded BIGINT NOT NULL DEFAULT 0 CHECK (seeded >= 0),
  -- Of a rolling window (`5h`), which only PostgreSQL has here: `spent` is the sum of its minutes from this one on. NULL = not
  -- added up yet.
  counted_from BIGINT,
  PRIMARY KEY (scope_id, time_window)
);

CREATE INDEX budgets_rolling ON budgets (counted_from) WHERE counted_from IS NOT NULL;

-- What was spent in rolling windows, by the minute of the charge, since 1970. Charges name it `scope 5h#29384756`.
CREATE TABLE budget_minutes (
  scope_id TEXT NOT NULL,
  time_window TEXT NOT NULL,
  minute BIGINT NOT NULL,
  spent BIGINT NOT NULL CHECK (spent >= 0),
  -- As in `budgets`.
  seeded BIGINT NOT NULL DEFAULT 0 CHECK (seeded >= 0),
  -- A day after the minute in which it left the window.
  kept_until BIGINT NOT NULL,
  PRIMARY KEY (scope_id, time_window, minute)
);

CREATE INDEX budget_minutes_kept ON budget_minutes (kept_until);
CREATE INDEX budget_minutes_recent ON budget_minutes (minute);

-- Whose limits were set, until everything that was charged before is counted in them: about 20 minutes. If the process that
-- counts dies, another one or its next start counts again.
CREATE TABLE limit_recounts (
  -- The key, project or workspace.
  owner TEXT PRIMARY KEY,
  set_at BIGINT NOT NULL
);

CREATE TABLE idempotency (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  body_sha256 TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'done')),
  status BIGINT,
  response TEXT,
  request_id TEXT,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (scope, key)
);

CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);

-- Responses that callers asked to store, with their input items, compressed and encrypted as credentials are.
CREATE TABLE stored_responses (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  ciphertext TEXT NOT NULL,
  wrapped_key TEXT NOT NULL,
  key_version TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, id)
);

-- The items of their output, which later requests may refer to.
CREATE TABLE stored_items (
  workspace_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  response_id TEXT NOT NULL,
  PRIMARY KEY (workspace_id, item_id),
  FOREIGN KEY (workspace_id, response_id) REFERENCES stored_responses (workspace_id, id) ON DELETE CASCADE
);

CREATE INDEX stored_items_by_response ON stored_items (workspace_id, response_id);

CREATE INDEX stored_responses_by_expiry ON stored_responses (expires_at);
CREATE INDEX stored_responses_by_key_version ON stored_responses (key_version);

-- Batches: files of requests that are answered in the background.

-- Files that callers have uploaded, and the results of batches as files. The content of a result is in `batch_lines`.
CREATE TABLE batch_files (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  -- 'batch': an upload; 'batch_output': results; 'requests': sent with the call that created the batch, and not shown.
  purpose TEXT NOT NULL CHECK (purpose IN ('batch', 'batch_output', 'requests')),
  name TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  -- Of results: the batch, and whether they are answers (1) or errors (0).
  batch_id TEXT,
  has_answers BIGINT CHECK (has_answers IN (0, 1)),
  created_at BIGINT NOT NULL,
  -- Not there for callers from then on. 0 = not complete yet.
  expires_at BIGINT NOT NULL
);

CREATE INDEX batch_files_by_workspace ON batch_files (workspace_id, id);
CREATE INDEX batch_files_by_expiry ON batch_files (expires_at);

-- Compressed, and encrypted as credentials are.
CREATE TABLE batch_file_parts (
  file_id TEXT NOT NULL REFERENCES batch_files (id) ON DELETE CASCADE,
  part BIGINT NOT NULL,
  ciphertext TEXT NOT NULL,
  wrapped_key TEXT NOT NULL,
  key_version TEXT NOT NULL,
  PRIMARY KEY (file_id, part)
);

CREATE INDEX batch_file_parts_by_key_version ON batch_file_parts (key_version);

CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  project_id TEXT NOT NULL,
  -- Pays for the lines. If it is revoked, the batch stops.
  key_id TEXT NOT NULL,
  -- The API it was created with, which shows it: 'chat' or 'messages'.
  surface TEXT NOT NULL CHECK (surface IN ('chat', 'messages')),
  -- The path of its requests: /v1/chat/completions
  endpoint TEXT NOT NULL,
  input_file_id TEXT NOT NULL,
  -- JSON object of texts, as the caller sent it.
  metadata TEXT,
  state TEXT NOT NULL CHECK (state IN ('running', 'ending', 'ended')),
  -- How it ends: 'completed', 'failed' (a line is wrong, so none was run), 'cancelled', 'expired', 'key_refused'. NULL = it runs.
  outcome TEXT,
  -- JSON array of what is wrong with its lines, or why it was stopped.
  errors TEXT,
  -- Why no line is started at the moment: 'balance' or 'limit'. NULL = nothing is in the way.
  waits_for TEXT,
  total BIGINT NOT NULL,
  succeeded BIGINT NOT NULL DEFAULT 0,
  errored BIGINT NOT NULL DEFAULT 0,
  cancelled BIGINT NOT NULL DEFAULT 0,
  expired BIGINT NOT NULL DEFAULT 0,
  cost BIGINT NOT NULL DEFAULT 0,
  -- What was expected when it was created.
  estimate BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  -- No line is started from then on.
  expires_at BIGINT NOT NULL,
  cancelled_at BIGINT,
  ending_at BIGINT,
  ended_at BIGINT,
  -- Its results are deleted then; NULL = it has not ended.
  erase_at BIGINT,
  output_days BIGINT NOT NULL,
  output_file_id TEXT,
  error_file_id TEXT,
  -- The process that runs it, and until when that process need not say again that it lives. Each claim raises the epoch.
  owner TEXT,
  epoch BIGINT NOT NULL DEFAULT 0,
  claimed_until BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX batches_by_workspace ON batches (workspace_id, id);
CREATE INDEX batches_unfinished ON batches (id) WHERE state <> 'ended';
CREATE INDEX batches_by_input ON batches (input_file_id);
CREATE INDEX batches_by_erasure ON batches (erase_at) WHERE erase_at IS NOT NULL;

-- One row per line that was answered. A line without a row has not run, or its answer was lost before it was charged.
CREATE TABLE batch_lines (
  batch_id TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
  -- From 1, as in the input.
  line BIGINT NOT NULL,
  -- 'kept': the answer is stored, and its charge is not certain yet. 'done': it is final.
  state TEXT NOT NULL CHECK (state IN ('kept', 'done')),
  outcome TEXT NOT NULL CHECK (outcome IN ('succeeded', 'errored', 'cancelled', 'expired')),
  -- The request that answered it; NULL = none was sent.
  request_id TEXT,
  -- Of the line as callers read it.
  bytes BIGINT NOT NULL,
  ciphertext TEXT NOT NULL,
  wrapped_key TEXT NOT NULL,
  key_version TEXT NOT NULL,
  PRIMARY KEY (batch_id, line)
);

CREATE INDEX batch_lines_kept ON batch_lines (batch_id, line) WHERE state = 'kept';
CREATE INDEX batch_lines_by_key_version ON batch_lines (key_version);

-- Replicas.

-- A process that holds. Its epoch goes up when it is considered dead; it can no longer end what it held under the old one.
CREATE TABLE replicas (
  id TEXT PRIMARY KEY,
  epoch BIGINT NOT NULL,
  heartbeat_at BIGINT NOT NULL
);

-- Changes that replicas tell each other, so that none keeps stale copies; and the load of limits where there is no Redis.
-- sqlite:
CREATE TABLE changes (
  sequence INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  -- The id of what was changed.
  object TEXT NOT NULL,
  at BIGINT NOT NULL
);

CREATE TABLE limit_loads (
  scope_id TEXT PRIMARY KEY,
  -- JSON: buckets, reservations, what each replica has running.
  state TEXT NOT NULL,
  -- The row says nothing from then on.
  drained_at BIGINT NOT NULL
);

-- postgres:
CREATE TABLE changes (
  sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind TEXT NOT NULL,
  object TEXT NOT NULL,
  at BIGINT NOT NULL
);

-- Unlogged: the counts of a minute need no recovery. After a crash of the server the table is empty and the limits start
-- over. Rows change all the time; without another index, and with room on the page, updates leave the primary key alone.
CREATE UNLOGGED TABLE limit_loads (
  scope_id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  drained_at BIGINT NOT NULL
) WITH (fillfactor = 50);

-- both:
CREATE INDEX changes_by_time ON changes (at);

-- One row per request of a known key: the entry of the request log, and the charge if there is one. New columns come last:
-- a journal that was written before an update has no values for them. Prompts and answers are
-- not stored. Ids ascend with time, so the newest are found by id alone.

CREATE TABLE requests (
  id TEXT PRIMARY KEY,
  started_at BIGINT NOT NULL,
  workspace_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  path TEXT NOT NULL,
  stream BIGINT NOT NULL CHECK (stream IN (0, 1)),
  model TEXT,
  -- 499: the client left before the end.
  status BIGINT NOT NULL,
  -- NULL = no failure, also not inside a stream.
  code TEXT,
  -- Tells apart failures that share a code: unknown_model, model_not_allowed, no_route …
  cause TEXT,
  reason TEXT,
  -- The route of the last attempt.
  provider TEXT,
  upstream_model TEXT,
  -- bytes | translation
  lane TEXT,
  -- When the last attempt began, after the start of the request, and how long it took to begin its answer or fail.
  attempt_start_ms BIGINT,
  attempt_ms BIGINT,
  first_event_ms BIGINT,
  -- Without the commit that writes the row.
  total_ms BIGINT NOT NULL,
  -- What the client calls itself.
  client TEXT,
  -- Whom and what it was for, as the client says. None has an index: every request would have to maintain it.
  session TEXT,
  -- The client's program, and the agent within it behind a slash.
  agent TEXT,
  -- A hash under the salt of the workspace; behind a space the id that was sent, where the operator wants that recorded.
  end_user TEXT,
  -- `name=value,name=value`, sorted by name.
  tags TEXT,
  -- JSON: the planned routes, the attempts with their outcomes, what the translation dropped, remarks about the reply. Each
  -- is left out if it is as usual; NULL = all are.
  details TEXT,
  held BIGINT,
  -- Nano-dollars that left the wallet of the workspace. NULL = no charge was made; 0 = it was made and is free.
  charge BIGINT CHECK (charge >= 0 AND charge <= 1000000000000000),
  -- The part of the cost that the wallet could not pay.
  written_off BIGINT CHECK (written_off > 0 AND written_off <= 1000000000000000),
  -- What the provider that answered bills the operator for it, by the cost of the route; NULL = unknown, or none answered.
  upstream_cost BIGINT CHECK (upstream_cost >= 0),
  price_version TEXT,
  -- Cached tokens included.
  input_tokens BIGINT,
  cache_read_tokens BIGINT,
  cache_write_tokens BIGINT,
  cache_write_1h_tokens BIGINT,
  output_tokens BIGINT,
  -- What the prompt cache saved by the price of the charge; negative if writing to it cost more. NULL = not charged.
  cache_saved BIGINT,
  -- JSON: tokens by bucket.
  usage TEXT,
  estimated BIGINT NOT NULL CHECK (estimated IN (0, 1)),
  -- The budgets that the charge was counted in, `scope window,scope window`; NULL = none. A charge belongs to the windows in
  -- which its money was held, and only to the limits that existed then, so it cannot be derived later.
  budgets TEXT,
  -- The version of that cost; `own` = the workspace's own key, which costs the operator nothing.
  cost_version TEXT,
  -- What attempts without an answer probably cost the operator; NULL = nothing, or unknown.
  failed_cost BIGINT CHECK (failed_cost >= 0),
  -- The batch it is a line of; NULL = none.
  batch_id TEXT
-- sqlite:
) WITHOUT ROWID;
-- postgres:
);
-- both:

CREATE INDEX requests_by_workspace ON requests (workspace_id, id);
CREATE INDEX requests_by_key ON requests (key_id, id);
CREATE INDEX requests_by_model ON requests (model, id);
CREATE INDEX requests_by_batch ON requests (batch_id, id) WHERE batch_id IS NOT NULL;
-- Few requests fail, so these cost next to nothing.
CREATE INDEX requests_failed ON requests (id) WHERE code IS NOT NULL;
CREATE INDEX requests_failed_by_workspace ON requests (workspace_id, id) WHERE code IS NOT NULL;
CREATE INDEX requests_failed_by_key ON requests (key_id, id) WHERE code IS NOT NULL;
CREATE INDEX requests_failed_by_model ON requests (model, id) WHERE code IS NOT NULL;

-- Charged requests of the embedded engine that are durable, and are applied to `requests`, `balances`, `budgets` and
-- `request_hours` a moment later. Always empty on PostgreSQL.
-- sqlite:
CREATE TABLE journal (
  sequence INTEGER PRIMARY KEY,
  -- JSON: the values of each row, in the order of the columns of `requests`.
  requests TEXT NOT NULL,
  -- Why the database did not accept it. Such a row stays, and `verify` reports it. NULL = to be applied.
  refusal TEXT
);
-- postgres:
CREATE TABLE journal (
  sequence BIGINT PRIMARY KEY,
  requests TEXT NOT NULL,
  refusal TEXT
);
-- both:

-- The charges of requests whose entries in the log were deleted.
CREATE TABLE archived_charges (
  -- Of the request.
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  charge BIGINT NOT NULL,
  written_off BIGINT,
  price_version TEXT,
  usage TEXT,
  estimated BIGINT NOT NULL,
  budgets TEXT
-- sqlite:
) WITHOUT ROWID;
-- postgres:
);
-- both:

CREATE INDEX archived_charges_by_workspace ON archived_charges (workspace_id, id);

CREATE VIEW charges AS
  SELECT id AS request_id, workspace_id, started_at + total_ms AS created_at, charge, written_off, price_version, usage,
    estimated, budgets
  FROM requests WHERE charge IS NOT NULL
  UNION ALL
  SELECT id, workspace_id, created_at, charge, written_off, price_version, usage, estimated, budgets FROM archived_charges;

-- Every movement of money. The ids of charges and write-offs follow from the id of their request.
CREATE VIEW transfers AS
  SELECT id, kind, NULL AS request_id, workspace_id, debit_account, credit_account, amount, NULL AS price_version,
    NULL AS usage, 0 AS estimated, reference, payment_id, created_at, NULL AS budgets
  FROM fundings
  UNION ALL
  SELECT 'tr_' || SUBSTR(request_id, 5), 'charge', request_id, workspace_id, 'wallet:' || workspace_id, 'revenue', charge,
    price_version, usage, estimated, NULL, NULL, created_at, budgets
  FROM charges
  UNION ALL
  SELECT 'tr_' || SUBSTR(request_id, 5) || '_writeoff', 'writeoff', request_id, workspace_id, 'writeoff', 'revenue',
    written_off, NULL, NULL, estimated, NULL, NULL, created_at, NULL
  FROM charges WHERE written_off IS NOT NULL;

-- Requests added up by hour, key, model, route, cause and agent in the commit that writes them. An hour that is over is moved
-- to request_sums.
CREATE TABLE request_hours (
  -- When the hour begins.
  start_at BIGINT NOT NULL,
  key_id TEXT NOT NULL,
  -- Empty = none was named.
  model TEXT NOT NULL,
  -- Of the last attempt: the provider, a space, and the upstream model. Empty = no route was tried.
  route TEXT NOT NULL,
  -- The cause, or else the code in lower case, or 'ok'.
  cause TEXT NOT NULL,
  -- Empty = none is known.
  agent TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  requests BIGINT NOT NULL,
  -- Requests with a code.
  errors BIGINT NOT NULL,
  -- Charged by estimated usage.
  estimated BIGINT NOT NULL,
  -- Cached tokens included.
  input_tokens BIGINT NOT NULL,
  cache_read_tokens BIGINT NOT NULL,
  cache_write_tokens BIGINT NOT NULL,
  cache_write_1h_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  charge BIGINT NOT NULL,
  cache_saved BIGINT NOT NULL,
  -- Of the attempts that answered; those of the others are in failed_cost.
  upstream_cost BIGINT NOT NULL,
  -- Charged requests without an upstream cost, and their charges.
  uncosted BIGINT NOT NULL,
  uncosted_charges BIGINT NOT NULL,
  failed_cost BIGINT NOT NULL,
  -- How many requests had their first event within so many milliseconds, and not within the bound before.
  first_25 BIGINT NOT NULL,
  first_50 BIGINT NOT NULL,
  first_100 BIGINT NOT NULL,
  first_200 BIGINT NOT NULL,
  first_350 BIGINT NOT NULL,
  first_500 BIGINT NOT NULL,
  first_750 BIGINT NOT NULL,
  first_1000 BIGINT NOT NULL,
  first_1500 BIGINT NOT NULL,
  first_2500 BIGINT NOT NULL,
  first_5000 BIGINT NOT NULL,
  first_10000 BIGINT NOT NULL,
  first_30000 BIGINT NOT NULL,
  first_later BIGINT NOT NULL,
  PRIMARY KEY (start_at, key_id, model, route, cause, agent)
);

-- Sums of the request log by time and by what reports group by, so that a report reads the same number of rows for a million
-- requests as for a thousand. They stay when old requests are removed, except those by agent and session.
CREATE TABLE request_sums (
  grain TEXT NOT NULL CHECK (grain IN ('hour', 'day')),
  series TEXT NOT NULL CHECK (series IN ('total', 'model', 'project', 'key', 'route', 'cause', 'agent', 'session')),
  -- Empty = all workspaces, which agents and sessions do not have.
  workspace_id TEXT NOT NULL,
  -- When the hour or day begins, in UTC.
  start_at BIGINT NOT NULL,
  -- The model, the id, or as in request_hours; empty in totals, and where there is none.
  subject TEXT NOT NULL,
  -- As in request_hours.
  requests BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  estimated BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  cache_read_tokens BIGINT NOT NULL,
  cache_write_tokens BIGINT NOT NULL,
  cache_write_1h_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  charge BIGINT NOT NULL,
  cache_saved BIGINT NOT NULL,
  upstream_cost BIGINT NOT NULL,
  uncosted BIGINT NOT NULL,
  uncosted_charges BIGINT NOT NULL,
  failed_cost BIGINT NOT NULL,
  first_25 BIGINT NOT NULL,
  first_50 BIGINT NOT NULL,
  first_100 BIGINT NOT NULL,
  first_200 BIGINT NOT NULL,
  first_350 BIGINT NOT NULL,
  first_500 BIGINT NOT NULL,
  first_750 BIGINT NOT NULL,
  first_1000 BIGINT NOT NULL,
  first_1500 BIGINT NOT NULL,
  first_2500 BIGINT NOT NULL,
  first_5000 BIGINT NOT NULL,
  first_10000 BIGINT NOT NULL,
  first_30000 BIGINT NOT NULL,
  first_later BIGINT NOT NULL,
  PRIMARY KEY (grain, series, workspace_id, start_at, subject)
);

-- Sessions have no sums over all workspaces. Without this, reading those of a day means a search for each workspace.
CREATE INDEX request_sums_of_sessions ON request_sums (start_at) WHERE series = 'session';

-- What providers bill, and how it compares with what was recorded.

-- One provider's bill that the configuration names.
CREATE TABLE bill_sources (
  provider TEXT PRIMARY KEY,
  -- A replica reads it until then; the others leave it alone.
  claimed_until BIGINT NOT NULL,
  -- The end of the last run; NULL = there was none.
  ended_at BIGINT,
  -- Why the last run did not read everything; NULL = it did.
  fault TEXT
);

-- As the provider reports it. A later report of the same day replaces all of its lines.
CREATE TABLE bill_lines (
  provider TEXT NOT NULL,
  -- When the day begins, in UTC.
  day BIGINT NOT NULL,
  -- The provider's names. An empty text: the report does not tell.
  model TEXT NOT NULL,
  provider_key TEXT NOT NULL,
  bucket TEXT NOT NULL,
  tier TEXT NOT NULL,
  region TEXT NOT NULL,
  -- Each is NULL where the line has none. Reports are exact below a nano-dollar, so amounts are in pico-dollars.
  quantity BIGINT,
  pico BIGINT,
  requests BIGINT,
  PRIMARY KEY (provider, day, model, provider_key, bucket, tier, region)
);

-- Nano-dollars from here on.
CREATE TABLE reconciliations (
  provider TEXT NOT NULL,
  day BIGINT NOT NULL,
  compared_at BIGINT NOT NULL,
  -- Why the day cannot be compared yet; NULL = it was.
  missing TEXT,
  billed BIGINT NOT NULL,
  recorded BIGINT NOT NULL,
  -- The differences of all models and buckets, added up without signs, and the part of it that no cause fits.
  differences BIGINT NOT NULL CHECK (differences >= 0),
  unexplained BIGINT NOT NULL CHECK (unexplained >= 0),
  -- Billed for keys that the gateway does not use; not in `billed`.
  foreign_billed BIGINT NOT NULL,
  PRIMARY KEY (provider, day)
);

CREATE TABLE reconciliation_lines (
  provider TEXT NOT NULL,
  day BIGINT NOT NULL,
  model TEXT NOT NULL,
  bucket TEXT NOT NULL,
  billed_quantity BIGINT NOT NULL,
  recorded_quantity BIGINT NOT NULL,
  billed BIGINT NOT NULL,
  recorded BIGINT NOT NULL,
  PRIMARY KEY (provider, day, model, bucket)
);

CREATE TABLE reconciliation_causes (
  provider TEXT NOT NULL,
  day BIGINT NOT NULL,
  -- Largest first.
  place BIGINT NOT NULL,
  model TEXT NOT NULL,
  cause TEXT NOT NULL,
  amount BIGINT NOT NULL,
  quantity BIGINT NOT NULL,
  -- How many requests fit, and the ids of the first hundred as a JSON array.
  requests BIGINT NOT NULL,
  request_ids TEXT NOT NULL,
  -- Billed for a key that the gateway does not use; NULL = part of the difference.
  foreign_key TEXT,
  detail TEXT,
  PRIMARY KEY (provider, day, place)
);

-- Append-only tables. A charge is never changed, and its row is only deleted once it is archived.
-- sqlite:
CREATE TRIGGER charges_not_updated
  BEFORE UPDATE OF id, workspace_id, charge, written_off, price_version, usage, estimated, budgets
  ON requests WHEN OLD.charge IS NOT NULL
  BEGIN SELECT RAISE(ABORT, 'charges are append-only'); END;
CREATE TRIGGER charges_not_deleted BEFORE DELETE ON requests
  WHEN OLD.charge IS NOT NULL AND NOT EXISTS (SELECT 1 FROM archived_charges WHERE id = OLD.id)
  BEGIN SELECT RAISE(ABORT, 'charges are append-only'); END;
CREATE TRIGGER archived_charges_not_updated BEFORE UPDATE ON archived_charges
  BEGIN SELECT RAISE(ABORT, 'archived charges are append-only'); END;
CREATE TRIGGER archived_charges_not_deleted BEFORE DELETE ON archived_charges
  BEGIN SELECT RAISE(ABORT, 'archived charges are append-only'); END;
CREATE TRIGGER fundings_not_updated BEFORE UPDATE ON fundings
  BEGIN SELECT RAISE(ABORT, 'fundings are append-only'); END;
CREATE TRIGGER fundings_not_deleted BEFORE DELETE ON fundings
  BEGIN SELECT RAISE(ABORT, 'fundings are append-only'); END;
CREATE TRIGGER credit_uses_not_updated BEFORE UPDATE ON credit_uses
  BEGIN SELECT RAISE(ABORT, 'credit uses are append-only'); END;
CREATE TRIGGER credit_uses_not_deleted BEFORE DELETE ON credit_uses
  BEGIN SELECT RAISE(ABORT, 'credit uses are append-only'); END;
CREATE TRIGGER prices_not_updated BEFORE UPDATE ON prices
  BEGIN SELECT RAISE(ABORT, 'prices are append-only'); END;
CREATE TRIGGER prices_not_deleted BEFORE DELETE ON prices
  BEGIN SELECT RAISE(ABORT, 'prices are append-only'); END;
CREATE TRIGGER audit_not_updated BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'audit rows are append-only'); END;
CREATE TRIGGER audit_not_deleted BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'audit rows are append-only'); END;

-- postgres:
CREATE FUNCTION refuse_edit() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION '% are append-only', TG_TABLE_NAME; END $$;
CREATE FUNCTION refuse_charge_edit() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM archived_charges WHERE id = OLD.id) THEN RETURN OLD; END IF;
    RAISE EXCEPTION 'charges are append-only';
  END $$;
CREATE TRIGGER charges_not_updated
  BEFORE UPDATE OF id, workspace_id, charge, written_off, price_version, usage, estimated, budgets
  ON requests FOR EACH ROW WHEN (OLD.charge IS NOT NULL) EXECUTE FUNCTION refuse_charge_edit();
CREATE TRIGGER charges_not_deleted BEFORE DELETE ON requests
  FOR EACH ROW WHEN (OLD.charge IS NOT NULL) EXECUTE FUNCTION refuse_charge_edit();
CREATE TRIGGER requests_not_truncated BEFORE TRUNCATE ON requests
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_edit();
CREATE TRIGGER archived_charges_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON archived_charges
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_edit();
CREATE TRIGGER fundings_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fundings
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_edit();
CREATE TRIGGER credit_uses_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_uses
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_edit();
CREATE TRIGGER prices_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON prices
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_edit();
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_edit();
-- both:
