// What a caller of Gemini's API writes for each row, by the names of the rows; `contents` say "hi" unless said otherwise.
// A row that is missing has no word there.

import { type Members, schema } from './request-fixture.ts'

const user = (...parts: unknown[]) => ({ role: 'user', parts })
const model = (...parts: unknown[]) => ({ role: 'model', parts })
const text = (words: string) => ({ text: words })
const hi = user(text('hi'))
const dialogue = [user(text('one')), model(text('two')), user(text('three'))]
const declared = (name: string, parametersJsonSchema: object = schema) => ({
  functionDeclarations: [{ name, description: 'Looks it up.', parametersJsonSchema }],
})
const tools = { tools: [declared('look')] }
const chosen = (functionCallingConfig: object) => ({ ...tools, toolConfig: { functionCallingConfig } })
const call = (id: string, city: string) => ({ functionCall: { id, name: 'look', args: { city } } })
const result = (id: string, response: object, more: object = {}) => ({
  functionResponse: { id, name: 'look', response, ...more },
})
const settings = (generationConfig: object) => ({ generationConfig })
const thinking = (thinkingConfig: object) => settings({ thinkingConfig })
const inline = (mimeType: string, data: string) => ({ inlineData: { mimeType, data } })

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const pdf = btoa('%PDF-1.4\n%%EOF')

export const geminiBodies: Readonly<Record<string, Members>> = {
  Text: {},
  'Text in any script': { contents: [user(text('Größe 四 🎉\u2028 '.repeat(60)))] },
  'System text at the start': { systemInstruction: { parts: [text('A'), text('B')] } },
  'Several turns': { contents: dialogue },
  'Several turns of one role in a row': { contents: [hi, user(text('you there'))] },
  'A prefilled answer': { contents: [hi, model(text('Well,'))] },

  Tools: tools,
  'A tool call and its result': {
    ...tools,
    contents: [hi, model(text('Looking.'), call('c1', 'Bern')), user(result('c1', { output: 'rain' }))],
  },
  'Parallel calls and their results': {
    ...tools,
    contents: [
      hi,
      model(call('c1', 'Bern'), call('c2', 'Oslo')),
      user(result('c2', { output: 'snow' }), result('c1', { output: 'rain' }), text('and?')),
    ],
  },
  'A result that is an error': {
    ...tools,
    contents: [hi, model(call('c1', 'Bern')), user(result('c1', { error: 'boom' }))],
  },
  'A call without a result': { ...tools, contents: [hi, model(call('c1', 'Bern')), hi] },
  'A schema with alternatives': {
    tools: [declared('look', { anyOf: [schema, { type: 'object', properties: {} }] })],
  },
  'Web search as a tool': { tools: [{ googleSearch: {} }] },
  'Other tools that the provider runs': { tools: [{ codeExecution: {} }] },
  'Tool choice: auto': chosen({ mode: 'AUTO' }),
  'Tool choice: none': chosen({ mode: 'NONE' }),
  'Tool choice: any': chosen({ mode: 'ANY' }),
  'Tool choice: one by name': chosen({ mode: 'ANY', allowedFunctionNames: ['look'] }),

  'Inline images': { contents: [user(inline('image/png', png))] },
  'Images by URL': {
    contents: [user({ fileData: { mimeType: 'image/png', fileUri: 'https://example.com/a.png' } })],
  },
  'PDF by URL': {
    contents: [user({ fileData: { mimeType: 'application/pdf', fileUri: 'https://example.com/a.pdf' } })],
  },
  'Files by id': {
    contents: [user({ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/1' } })],
  },
  'Images in tool results': {
    ...tools,
    contents: [
      hi,
      model(call('c1', 'Bern')),
      user(result('c1', { output: 'a view' }, { parts: [inline('image/png', png)] })),
    ],
  },
  'Documents in tool results': {
    ...tools,
    contents: [hi, model(call('c1', 'Bern')), user(result('c1', {}, { parts: [inline('application/pdf', pdf)] }))],
  },
  Audio: { contents: [user(inline('audio/wav', btoa('RIFF\x04\0\0\0WAVE')))] },

  'Effort: low': thinking({ thinkingLevel: 'low' }),
  'Effort: high': thinking({ thinkingLevel: 'high' }),
  'Effort together with tools': { ...tools, ...thinking({ thinkingLevel: 'high' }) },

  'Output cap': settings({ maxOutputTokens: 500 }),
  'Output cap above the model’s': settings({ maxOutputTokens: 9000 }),
  'No output cap': {},
  'Stop sequences': settings({ stopSequences: ['END'] }),
  'More than four stop sequences': settings({ stopSequences: ['A', 'B', 'C', 'D', 'E'] }),
  Temperature: settings({ temperature: 0.5 }),
  'Temperature above 1': settings({ temperature: 1.5 }),
  'Top-p': settings({ topP: 0.5 }),
  'Top-k': settings({ topK: 40 }),
  'Frequency penalty': settings({ frequencyPenalty: 0.5 }),
  'Presence penalty': settings({ presencePenalty: 0.5 }),
  Seed: settings({ seed: 7 }),
  'Output by JSON schema': settings({
    responseMimeType: 'application/json',
    responseJsonSchema: { ...schema, additionalProperties: false },
  }),
  'Output as any JSON object': settings({ responseMimeType: 'application/json' }),
  'Faster processing at a higher price': { serviceTier: 'priority' },
  'Cheaper processing': { serviceTier: 'flex' },
  'Log probabilities': settings({ responseLogprobs: true, logprobs: 3 }),
  'An unknown field': { tomorrow: { option: 1 } },
}
