// The body at a provider of generateContent when a request has arrived, by the names of the rows. A row that
// is missing has no word there: it is refused, or left out with a warning.

import { absent, type Shape, saying, some } from '../shape.ts'
import { type Shapes, schema } from './request-fixture.ts'

const user = (...parts: readonly Shape[]): Shape => ({ role: 'user', parts })
const model = (...parts: readonly Shape[]): Shape => ({ role: 'model', parts })
const text = (words: string): Shape => ({ text: words })
const dialogue = [user(text('one')), model(text('two')), user(text('three'))]
const settings = (generationConfig: Shape): Shapes => ({ carried: { generationConfig } })
const thinking = (thinkingConfig: Shape): Shapes => settings({ thinkingConfig })
const declared = (name: string, parametersJsonSchema: Shape = schema): Shape => ({
  tools: [{ functionDeclarations: [{ name, parametersJsonSchema }] }],
})
const chosen = (functionCallingConfig: Shape): Shapes => ({
  carried: { ...objectOf(declared('look')), toolConfig: { functionCallingConfig } },
})
const call = (id: string, city: string): Shape => ({ functionCall: { id, name: 'look', args: { city } } })
const result = (id: string, response: Shape, more: Shape = {}): Shape => ({
  functionResponse: { id, name: 'look', response, ...objectOf(more) },
})
const inline = (mimeType: string): Shape => ({
  inlineData: { mimeType, data: (data) => typeof data === 'string' && data.length > 10 },
})
const linked = (mimeType: string, fileUri: string): Shape => ({ fileData: { mimeType, fileUri } })

function objectOf(shape: Shape): { readonly [name: string]: Shape } {
  return shape as { readonly [name: string]: Shape }
}

const scripts = 'Größe 四 🎉\u2028 '.repeat(60)

export const geminiShapes: Readonly<Record<string, Shapes>> = {
  Text: { carried: { contents: [user(text('hi'))] } },
  'Text in any script': { carried: { contents: [user(text(scripts))] } },
  'System text at the start': {
    carried: { systemInstruction: { parts: [text('A'), text('B')] }, contents: [user(text('hi'))] },
  },
  'System text in mid-conversation': {
    emulated: {
      systemInstruction: absent,
      contents: [...dialogue.slice(0, 2), { role: 'user', parts: saying('<system>\nB\n') }],
    },
  },
  'Several turns': { carried: { contents: dialogue } },
  'Several turns of one role in a row': { carried: { contents: [user(text('hi'), text('you there'))] } },
  'A refusal in the history': { carried: { contents: some(model(text('No.'))) } },
  'Claude Code’s billing line': { carried: { systemInstruction: { parts: [text('A')] } } },

  Tools: { carried: declared('look') },
  'Faster processing at a higher price': { carried: { serviceTier: 'priority' } },
  'Cheaper processing': { carried: { serviceTier: 'flex' } },
  'A tool call and its result': {
    carried: {
      contents: [user({}), model(text('Looking.'), call('c1', 'Bern')), user(result('c1', { output: 'rain' }))],
    },
  },
  // Results stand in the order of the calls there.
  'Parallel calls and their results': {
    carried: {
      contents: [
        user({}),
        model(call('c1', 'Bern'), call('c2', 'Oslo')),
        user(result('c1', { output: 'rain' }), result('c2', { output: 'snow' }), text('and?')),
      ],
    },
  },
  'A result that is an error': { carried: { contents: some(user(result('c1', { error: 'boom' }))) } },
  // Strictness is had for all tools at once, by a mode.
  'Strict schemas': chosen({ mode: 'VALIDATED' }),
  'A schema with alternatives': { carried: declared('look', { anyOf: [schema, { type: 'object' }] }) },
  'Custom tools with free text': {
    emulated: declared('patch', { properties: { input: { type: 'string' } }, required: ['input'] }),
  },
  // An answer of that form has one call: only the first is passed on.
  'Legacy functions': {
    emulated: {
      ...objectOf(declared('look')),
      contents: [
        user({}),
        model({ functionCall: { name: 'look', args: { city: 'Bern' } } }),
        user({ functionResponse: { name: 'look', response: { output: 'rain' } } }),
      ],
    },
  },
  'Tools in a namespace': { emulated: declared('git__look') },
  'Tools in an input item': { carried: declared('look') },
  'A local shell': { emulated: declared('local_shell', { type: 'object' }) },
  'Claude’s tools that the caller runs (bash, editor, memory)': { emulated: declared('bash', { type: 'object' }) },
  'Tool choice: auto': chosen({ mode: 'AUTO' }),
  'Tool choice: none': chosen({ mode: 'NONE' }),
  'Tool choice: any': chosen({ mode: 'ANY', allowedFunctionNames: absent }),
  'Tool choice: one by name': chosen({ mode: 'ANY', allowedFunctionNames: ['look'] }),
  'Tool choice: some of them': {
    carried: { toolConfig: { functionCallingConfig: { mode: 'VALIDATED', allowedFunctionNames: ['look'] } } },
  },
  // Only the first call is passed on.
  'One call at a time': { emulated: declared('look') },

  'Inline images': { carried: { contents: [user(inline('image/png'))] } },
  'Images by URL': { carried: { contents: [user(linked('image/png', 'https://example.com/a.png'))] } },
  // There are no titles: the name goes before it.
  'Inline PDF': { carried: { contents: [user(text('r.pdf'), inline('application/pdf'))] } },
  'PDF by URL': { carried: { contents: [user(linked('application/pdf', 'https://example.com/a.pdf'))] } },
  'Text documents': { emulated: { contents: [{ role: 'user', parts: saying('notes') }] } },
  'Search results': {
    emulated: { contents: [{ role: 'user', parts: saying('Found\nhttps://example.com\n\nnotes') }] },
  },
  'Images in tool results': {
    carried: { contents: some(user(result('c1', { output: 'a view' }, { parts: [inline('image/png')] }))) },
  },
  'Documents in tool results': {
    carried: { contents: some(user(result('c1', {}, { parts: [inline('application/pdf')] }))) },
  },
  Audio: { carried: { contents: [user(inline('audio/wav'))] } },

  'Effort: low': thinking({ thinkingLevel: 'low', thinkingBudget: absent }),
  'Effort: high': thinking({ thinkingLevel: 'high', thinkingBudget: absent }),
  'Effort together with tools': {
    carried: { ...objectOf(declared('look')), generationConfig: { thinkingConfig: { thinkingLevel: 'high' } } },
  },
  'Adaptive thinking': thinking({ thinkingLevel: absent, includeThoughts: true }),
  // 4,000 tokens are what the word medium stands for.
  'Thinking with a budget': thinking({ thinkingLevel: 'medium' }),

  'Output cap': settings({ maxOutputTokens: 500 }),
  'No output cap': settings({ maxOutputTokens: 4096 }),
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
    responseJsonSchema: { properties: schema.properties, required: ['city'] },
  }),
  'Output as any JSON object': settings({ responseMimeType: 'application/json', responseJsonSchema: absent }),
  // It caches by itself and need not be asked.
  'Caching without marks': { carried: { cachedContent: absent, contents: [user(text('hi'))] } },
}
