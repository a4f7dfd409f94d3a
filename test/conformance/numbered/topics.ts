// What a list of topics is, and why some numbers have no test.

export type Topics = Readonly<Record<number, string>>

const converse = 'Not applicable: Bedrock is asked by InvokeModel, in Messages; Converse is spoken nowhere here.'

export const vectorReasons: Topics = {}

export const pitfallReasons: Topics = {
  90: converse,
  98: converse,
  99: converse,
  136: 'No test sits out five minutes. The runtime’s limit is off (`src/providers/call-endpoint.ts`); the gateway’s own limits are tested with a clock that jumps (`test/keep-alives.test.ts`).',
}

/** What the tests of a number leave out. */
export const vectorRemarks: Topics = { 94: 'The wallet’s part comes with holds before dispatch.' }

/** What is left open of a pitfall that its tests stand for, and why. */
export const pitfallRemarks: Topics = {
  9: 'What a wrapping host is not sent for want of a beta flag, where the dialect stays the same, is in no warning: those bytes are not read for their meaning.',
  11: '`input` in the place of `messages` is refused with a hint: it is another API, whose items, tools and replies are a surface of their own.',
  22: 'Decided otherwise: what was not asked for is not sent, so that a model’s own default holds wherever it is hosted.',
  45: 'Refused by name everywhere. Searching with the provider’s own tool would need its results, citations and price as blocks of the caller’s dialect.',
  80: 'No turns are kept to find a signature that a client has thrown away: Google’s documented value to skip the check goes out instead.',
  93: 'Nothing is fetched: a gateway that loads addresses which callers choose is a way into the operator’s network. Routes that take no address are passed over.',
  155: 'Decided otherwise: routes that can count are asked, which is exact and free; only the others are estimated here.',
}
