// Programmer errors; expected outcomes are results. A failed assertion is a bug in Tollgate. It ends the one request it
// happened in with a 500 and never the process: code that calls back into several requests, such as a group commit, catches
// what one of them throws and goes on with the others. The one exception is the wallet book of the embedded ledger: if it
// contradicts the database, the gateway takes no new requests, finishes the running ones and exits (decision 0024).

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}

/** Ends a switch over a closed union: a new member does not compile until it is handled. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`)
}
