// The time limit of every test and hook, loaded by bunfig.toml before each test file. It ends a test that hangs and is no
// expectation: a machine at load 20 takes twenty times as long as an idle one. Tests do not set other limits.
// Bun forgets it after the first file unless it runs with --isolate, as `npm test` does.

import { setDefaultTimeout } from 'bun:test'

export const testLimitMs = 900_000

setDefaultTimeout(testLimitMs)
