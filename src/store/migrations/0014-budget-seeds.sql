-- A spend limit that is set in the middle of its day or month begins with what its scope was charged before. That part of
-- `spent` has no transfer that names the budget, so it is told apart: `spent` less `seeded` is the sum of those that do.

ALTER TABLE budgets ADD COLUMN seeded BIGINT NOT NULL DEFAULT 0 CHECK (seeded >= 0);
