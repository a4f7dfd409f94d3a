// What a list of topics is, and why some numbers have no test.

export type Topics = Readonly<Record<number, string>>

const converse = 'Not applicable: Bedrock is asked by InvokeModel, in Messages; Converse is spoken nowhere here.'

export const vectorReasons: Topics = {}

export const pitfallReasons: Topics = {
  90: converse,
  98: converse,
  99: converse,
  136: 'No test sits out five minutes. The runtime’s limit is off (`src/providers/call-endpoint.ts`); the gateway’s own limits are tested with a clock that jumps (`test/keep-alives.test.ts`).',
  161: 'A matter of names in the catalog, not of a dialect: ids that hold `anthropic` or `claude` are listed; aliases for others are not built.',
  170: converse,
  171: converse,
}

/** What the tests of a number leave out. */
export const vectorRemarks: Topics = { 94: 'The wallet’s part comes with holds before dispatch.' }
