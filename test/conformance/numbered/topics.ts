// The type of a list of topics, and the reasons why some numbers have no test.

export type Topics = Readonly<Record<number, string>>

const converse = 'Not applicable: the gateway calls Bedrock with InvokeModel, in Messages, and does not use Converse.'

export const vectorReasons: Topics = {}

export const pitfallReasons: Topics = {
  90: converse,
  98: converse,
  99: converse,
  136: 'No test waits five minutes. The runtime’s limit is off (`src/providers/call-endpoint.ts`); the gateway’s own limits are tested with a clock that jumps (`test/keep-alives.test.ts`).',
}

/** Gaps in the tests of a number. */
export const vectorRemarks: Topics = { 94: 'The wallet’s part comes with holds before dispatch.' }

/** Open parts of a pitfall that has tests, and why. */
export const pitfallRemarks: Topics = {
  9: 'If a wrapping host of the same dialect lacks a beta flag, the removed members cause no warning, because those bytes are not parsed.',
  11: '`input` in the place of `messages` is refused with a hint: it belongs to another API, Responses, which has its own path.',
  22: 'Decided otherwise: nothing is sent that was not requested, so that the model’s own default applies on every host.',
  45: 'Refused by name everywhere. Searching with the provider’s own tool would need its results, citations and price as blocks of the caller’s dialect.',
  80: 'No turns are kept to find a signature that a client has thrown away: Google’s documented value to skip the check goes out instead.',
  93: 'Nothing is fetched: a gateway that loads URLs chosen by callers is a way into the operator’s network. Routes that accept no URLs are skipped.',
  155: 'Decided otherwise: routes that can count do so, which is exact and free; only for the others the gateway estimates.',
}
