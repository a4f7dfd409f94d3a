// The answers of the suite as a provider of generateContent gives them, by the names of their rows. What is missing it
// cannot say: which stop sequence ended it, what went into a cache; calls always come whole.

import { callPart, geminiBytes, geminiUsage, thoughtPart } from './gemini-bytes.ts'
import type { ProviderBytes } from './reply-fixture.ts'

const bern = '{"z": 1.0, "city":"Zürich", "10":1, "n":12345678901234567890}'
const oslo = '{"city":"Oslo"}'
const signed = { thoughtSignature: 'CiQBjz1rX8Rk' }

export const geminiReplies: Readonly<Record<string, ProviderBytes>> = {
  Text: geminiBytes({
    records: [[{ text: 'Grüße — 四' }], [{ text: ' 🎉\n"quoted" \\ and' }], [{ text: '\u2028gone.' }]],
  }),
  Reasoning: geminiBytes({ records: [[thoughtPart('Two and ')], [thoughtPart('two …')], [{ text: '4' }]] }),
  'Encrypted reasoning': geminiBytes({ records: [[{ text: '4', ...signed }]] }),
  'An empty answer': geminiBytes({ records: [] }),
  'Cut off by the output cap': geminiBytes({ records: [[{ text: 'So long' }]], finish: 'MAX_TOKENS' }),
  'A refusal': geminiBytes({ records: [], finish: 'SAFETY', finishMessage: 'I cannot help with that.' }),
  'Usage with reasoning tokens': geminiBytes({
    records: [[{ text: 'ok' }]],
    // Thoughts are counted beside the answer: 5 + 15 = 20.
    usage: { ...geminiUsage, thoughtsTokenCount: 15, totalTokenCount: 30 },
  }),
  'Keep-alives': geminiBytes({ records: [': ping\n\n', [{ text: 'o' }], [], [{ text: 'k' }]] }),
  'A tool call': geminiBytes({ records: [[callPart('call_1', 'look', bern, signed)]] }),
  'A tool call without arguments': geminiBytes({ records: [[callPart('call_1', 'now', '{}')]] }),
  'Text and parallel calls': geminiBytes({
    records: [[{ text: 'Looking.' }], [callPart('call_1', 'look', bern, signed), callPart('call_2', 'look', oslo)]],
  }),
  'A call of a custom tool with free text': geminiBytes({
    records: [[callPart('call_1', 'patch', '{"input": "*** Begin \\"x\\" 🎉\\n"}')]],
  }),
  'Text after a call': geminiBytes({
    records: [[{ text: 'One.' }], [callPart('call_2', 'look', oslo)], [{ text: 'Two.' }]],
  }),
  'Reasoning before a call': geminiBytes({
    records: [[thoughtPart('I must look.')], [callPart('call_2', 'look', oslo, signed)]],
  }),
}
