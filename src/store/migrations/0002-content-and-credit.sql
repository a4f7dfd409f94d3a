-- The content export of projects, and alerts before the credit of a plan expires.

-- Whether its prompts and answers are sent to the operator's collector, if the operator has set one.
ALTER TABLE projects ADD COLUMN exports_content BIGINT NOT NULL DEFAULT 0 CHECK (exports_content IN (0, 1));

-- How many days before the credit expires.
ALTER TABLE alert_rules ADD COLUMN days BIGINT
  CHECK (days BETWEEN 1 AND 366 AND (kind = 'credit.expiring') = (days IS NOT NULL));
