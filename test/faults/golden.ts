// The fault matrix: what a provider does wrong, and what must come of it. Worked out from the failure table of the
// routing rules, row by row; nothing here was copied from a run. One row for each fault, read from left to right:
// what the client sees while another route is healthy, what it sees when every route does the same, how often one bad
// route is called, and how that route stands after five such requests.
//
// What a client sees:
//   hidden             the answer of the second route, as if nothing had been
//   hidden, waited     the same, after headers had gone out early: they name the route that was being tried then
//   CODE words         a failure with that status and code; the message has the words
//   OUTAGE words       the same with NOT_FOUND on the two endpoints of the specification, UNAVAILABLE on others
//   event CODE words   the same inside a stream, after early headers
//   interrupted words  content, then STREAM_INTERRUPTED; no ending is made up

/** How one fault is met. */
export interface Outcome {
  /** The first of two routes is bad. */
  readonly first: string
  /** Both are. */
  readonly all: string
  /** Calls that one bad route gets for one request. */
  readonly calls: number
  /** How many calls were made for the request: when the first route is bad, when both are. */
  readonly attempts: readonly [first: number, all: number]
  /** The client should retry in 4 s when both are bad. */
  readonly isTransient?: true
}

export interface GoldenRow extends Outcome {
  readonly fault: string
  /** As the catalog shows the route after five requests in a row (twenty that had begun to answer). */
  readonly health: 'ejected' | 'parked' | 'healthy'
  /** Where an answer that is not streamed makes a difference: nothing is committed before its last byte. */
  readonly whole?: Outcome
  /** The same on the byte lane: the provider is silent until it has finished, and has the whole time. */
  readonly wholeBytes?: Outcome
}

const notFound = 'NOT_FOUND'

/** Another route may help, and the client learns the class only if all of them fail. */
const movesOn = (words: string): Outcome => ({
  first: 'hidden',
  all: `${notFound} ${words}`,
  calls: 1,
  attempts: [2, 2],
})

/** The same, and where no other route is left the first one is tried again, up to three calls in all. */
const passes = (words: string): Outcome => ({
  ...movesOn(words),
  all: `OUTAGE ${words}`,
  attempts: [2, 3],
  isTransient: true,
})

/** Found by the clock for the first event, 60 s while another route is left, else 10 min; headers went out after 10 s. */
const slow: Outcome = { first: 'hidden, waited', all: 'event OUTAGE timed out', calls: 1, attempts: [1, 1] }
/** A translated call has the limit for the first event, and the time for the tokens of a whole reply. */
const slowWhole: Outcome = { ...movesOn('timed out'), all: 'OUTAGE timed out', isTransient: true }
/** A provider that works and one that hangs look the same until the request's own ten minutes are over. */
const slowWholeBytes: Outcome = {
  first: 'OUTAGE timed out',
  all: 'OUTAGE timed out',
  calls: 1,
  attempts: [1, 1],
  isTransient: true,
}

/** The request is at fault: no other route is tried, none is blamed. */
const callers: Outcome = {
  first: 'INVALID_REQUEST no good',
  all: 'INVALID_REQUEST no good',
  calls: 1,
  attempts: [1, 1],
}

/** Something that the request names is not there. Another route may have it, and none is blamed. */
const lacking: Outcome = { ...movesOn(''), all: 'INVALID_REQUEST no good' }

/** Trouble with our credential is the operator's: it never reads as a 401, and no billing text is shown. */
const credential = movesOn('operator')

export const golden: readonly GoldenRow[] = [
  { fault: 'connect refused', ...passes('unreachable'), calls: 0, health: 'ejected' },
  { fault: 'TLS failure', ...passes('unreachable'), calls: 1, health: 'ejected' },
  // Most likely a pooled socket that was dead before: once more over a fresh one, within the three attempts of a request.
  { fault: 'reset', ...passes('broken'), calls: 2, attempts: [3, 3], health: 'ejected' },
  { fault: 'hang before headers', ...slow, whole: slowWhole, wholeBytes: slowWholeBytes, health: 'ejected' },
  { fault: 'hang after headers', ...slow, whole: slowWhole, wholeBytes: slowWholeBytes, health: 'ejected' },
  { fault: 'slow drip', ...slow, whole: slowWhole, wholeBytes: slowWholeBytes, health: 'ejected' },
  { fault: '400', ...callers, health: 'healthy' },
  { fault: '400 of a bad key', ...credential, health: 'parked' },
  { fault: '401', ...credential, health: 'parked' },
  { fault: '402', ...credential, health: 'parked' },
  // The account may serve smaller ones; its remaining quota is unknown.
  { fault: '402 of a large request', ...movesOn('lacks what was asked for'), health: 'healthy' },
  { fault: '403', ...credential, health: 'parked' },
  { fault: '403 of a file', ...lacking, health: 'healthy' },
  { fault: '404 of a file', ...lacking, health: 'healthy' },
  { fault: '404', ...movesOn('does not know the model'), health: 'parked' },
  // Not an answer of any API: most likely a wrong address, which another route does not have.
  { fault: '404 of a proxy', ...movesOn('404'), health: 'ejected' },
  { fault: '405', ...movesOn('405'), health: 'ejected' },
  { fault: '408', ...passes('408'), health: 'ejected' },
  { fault: '410', ...movesOn('does not know the model'), health: 'parked' },
  { fault: '413', ...movesOn(''), all: 'PAYLOAD_TOO_LARGE too large', health: 'healthy' },
  { fault: '422', ...callers, health: 'healthy' },
  { fault: '424', ...lacking, health: 'healthy' },
  { fault: '429', ...movesOn(''), all: 'LIMIT_EXCEEDED 1', health: 'parked' },
  { fault: '429 with Retry-After: 7', ...movesOn(''), all: 'LIMIT_EXCEEDED 7', health: 'parked' },
  { fault: '429 with Retry-After: 90', ...movesOn(''), all: 'LIMIT_EXCEEDED 90', health: 'parked' },
  { fault: 'quota 429', ...credential, health: 'parked' },
  { fault: '500', ...passes('500'), health: 'ejected' },
  { fault: '502', ...passes('502'), health: 'ejected' },
  { fault: '503', ...passes('503'), health: 'ejected' },
  { fault: '529', ...passes('529'), health: 'ejected' },
  { fault: '503 whose body hangs', ...passes('503'), health: 'ejected' },
  { fault: '503 cut in its body', ...passes('503'), health: 'ejected' },
  { fault: '400 whose body hangs', ...callers, health: 'healthy' },
  { fault: '400 cut in its body', ...callers, health: 'healthy' },
  { fault: '429 cut in its body, with Retry-After: 7', ...movesOn(''), all: 'LIMIT_EXCEEDED 7', health: 'parked' },
  { fault: 'redirect', ...movesOn('redirecting'), health: 'ejected' },
  { fault: '200 with error event', ...passes(''), health: 'ejected' },
  { fault: '200 with HTML', ...passes('invalid response'), health: 'ejected' },
  { fault: 'empty 200', ...passes('invalid response'), health: 'ejected' },
  { fault: 'truncated JSON', ...passes('invalid response'), health: 'ejected' },
  { fault: 'cut before content', ...passes('broken'), health: 'ejected' },
  {
    fault: 'cut after content',
    ...{ first: 'interrupted broke off', all: 'interrupted broke off', calls: 1, attempts: [1, 1] },
    // Nothing of it has reached the caller yet.
    whole: passes('broken'),
    health: 'ejected',
  },
  { fault: 'oversized event', ...passes('invalid response'), health: 'ejected' },
  { fault: 'gzip body', ...passes('invalid response'), health: 'ejected' },
]
