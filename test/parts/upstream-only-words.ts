// The few records a fake provider needs in the dialects that no caller speaks. Both name in the path, or in the body,
// whether a stream is wanted, so that whoever plays a provider asks here.

import type { UpstreamCall } from './upstream.ts'
import type { Words } from './upstream-words.ts'

const geminiUsage = { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 }

const geminiReply = (parts: readonly object[], more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  usageMetadata: geminiUsage,
  modelVersion: 'up',
  responseId: 'r1',
})
const geminiRecord = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

export const geminiWords: Words = {
  opening: geminiRecord(geminiReply([{ text: '' }])),
  says: (text) => geminiRecord(geminiReply([{ text }])),
  ending: geminiRecord(geminiReply([{ text: '' }], { finishReason: 'STOP' })),
  terminal: '"finishReason"',
  error: geminiRecord({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
  whole: JSON.stringify(geminiReply([{ text: 'hello' }], { finishReason: 'STOP' })),
}

const responsesEvent = (type: string, members: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
const responsesUsage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
const item = { type: 'message', id: 'msg_1', role: 'assistant', content: [] as object[] }
const said = { ...item, content: [{ type: 'output_text', text: 'hello', annotations: [] }] }
const response = { id: 'resp_1', object: 'response', model: 'up', status: 'completed', usage: responsesUsage }

export const responsesWords: Words = {
  opening:
    responsesEvent('response.created', { response: { id: 'resp_1', status: 'in_progress', output: [] } }) +
    responsesEvent('response.output_item.added', { output_index: 0, item }),
  says: (delta) =>
    responsesEvent('response.output_text.delta', { output_index: 0, item_id: 'msg_1', content_index: 0, delta }),
  ending: responsesEvent('response.completed', { response: { ...response, output: [] } }),
  terminal: 'response.completed',
  error: responsesEvent('error', { code: 'server_error', message: 'the engine fell over', param: null }),
  whole: JSON.stringify({ ...response, output: [said] }),
}

export function isGeminiPath(path: string): boolean {
  return path.includes(':streamGenerateContent') || path.includes(':generateContent')
}

export function wantsStream(call: UpstreamCall): boolean {
  return call.path.includes(':streamGenerateContent') || call.json().stream === true
}
