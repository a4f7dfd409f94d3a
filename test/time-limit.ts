// The time limit of every test and hook, loaded by bunfig.toml before each test file. It ends a test that hangs and is no
// expectation: a machine at load 20 takes twenty times as long as an idle one. Tests do not set other limits.
// Bun forgets it after the first file of a process, so `npm test` also passes it as an argument.

import { setDefaultTimeout } from 'bun:test'

export const testLimitMs = 900_000

setDefaultTimeout(testLimitMs)
