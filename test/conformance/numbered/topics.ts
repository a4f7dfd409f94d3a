// What a list of topics is, and why some numbers have no test.

export type Topics = Readonly<Record<number, string>>

const gemini = 'Not applicable yet: Gemini; comes with that dialect.'
const responses = 'Not applicable yet: OpenAI Responses; comes with that dialect.'
const bedrock = 'Not applicable yet: Bedrock; comes with that dialect.'
const vertex = 'Not applicable yet: Vertex; comes with that provider.'

export const vectorReasons: Topics = { 66: gemini, 67: gemini, 69: gemini, 70: responses, 89: responses, 90: gemini }

export const pitfallReasons: Topics = {
  4: responses,
  6: vertex,
  80: gemini,
  81: gemini,
  90: bedrock,
  98: bedrock,
  99: bedrock,
  100: gemini,
  109: gemini,
  115: gemini,
  119: gemini,
  120: gemini,
  126: gemini,
  127: gemini,
  128: gemini,
  129: gemini,
  136: 'No test sits out five minutes. The runtime’s limit is off (`src/providers/call-endpoint.ts`); the gateway’s own limits are tested with a clock that jumps (`test/keep-alives.test.ts`).',
  143: bedrock,
  161: 'A matter of names in the catalog, not of a dialect: ids that hold `anthropic` or `claude` are listed; aliases for others are not built.',
  163: 'A matter of names in the catalog, not of a dialect: an id with a suffix is unknown, and the answer names the nearest.',
  170: bedrock,
  171: bedrock,
  172: vertex,
  173: gemini,
  174: gemini,
  179: 'Not applicable yet: Fireworks; comes with that provider’s data. The translation lane streams in any case (137), and records without choices are read (112).',
}

/** What the tests of a number leave out. */
export const vectorRemarks: Topics = { 94: 'The wallet’s part comes with holds before dispatch.' }
