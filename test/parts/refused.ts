// The Failure that management code throws, as a value for an expectation.

import { Failure } from '../../src/kernel/failure.ts'

/** Throws if the work succeeds or throws something else. */
export async function refusalOf(work: Promise<unknown> | (() => unknown)): Promise<Failure> {
  try {
    await (typeof work === 'function' ? work() : work)
  } catch (thrown) {
    if (thrown instanceof Failure) return thrown
    throw thrown
  }
  throw new Error('it was not refused')
}
