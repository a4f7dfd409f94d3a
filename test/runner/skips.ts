// Which tests may be skipped where everything is to be run. A test that is skipped shows nothing, and a run that stays
// green without it tells nobody; so whoever installs all that tests need says TOLLGATE_TEST_SKIPS=none.

/** By the beginning of their names, and why none of our own machines is to blame. */
const excused: Readonly<Record<string, string>> = {
  'test/deploy/files.test.ts: kubectl builds': 'Debian has no package for kubectl',
  'test/deploy/files.test.ts: systemd': 'systemd-analyze comes with an init that a container has no use for',
  'test/recipes/python.test.ts: ': 'what it fetches is not in the lock file, and its registry may be away',
  'test/recipes/claude-code.test.ts: ': 'the same',
  'test/crash/outages.test.ts: a full disk': 'mounting a small disk needs privileges that containers seldom have',
}

/** Those that nothing excuses. */
export function unexcused(skipped: readonly string[]): readonly string[] {
  return skipped.filter((name) => !Object.keys(excused).some((beginning) => name.startsWith(beginning)))
}
