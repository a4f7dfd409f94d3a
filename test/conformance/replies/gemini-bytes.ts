// Replies as Google sends them, with all members.

import type { ProviderBytes } from './reply-fixture.ts'

/** A part as JSON, where its spelling counts. */
export type Part = object | string

export interface GeminiReplyParts {
  /** One record each; a string is a complete record. */
  readonly records: readonly (readonly Part[] | string)[]
  readonly finish?: string
  readonly finishMessage?: string
  readonly usage?: object
}

export const geminiUsage = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }

export function geminiBytes(reply: GeminiReplyParts): ProviderBytes {
  const { records, finish = 'STOP', finishMessage, usage = geminiUsage } = reply
  const ending = { finishReason: finish, ...(finishMessage !== undefined && { finishMessage }) }
  const write = (parts: readonly Part[], more: object): string =>
    JSON.stringify({
      candidates: [{ content: { parts: [], role: 'model' }, ...more, index: 0, safetyRatings: [] }],
      usageMetadata: { ...usage, promptTokensDetails: [{ modality: 'TEXT', tokenCount: 10 }] },
      modelVersion: 'up-model',
      responseId: 'Up1',
    }).replace('"parts":[]', () => `"parts":[${parts.map(written).join(',')}]`)
  const spoken = records.filter((each) => typeof each !== 'string')
  return {
    stream: [
      ...records.map((each) => (typeof each === 'string' ? each : `data: ${write(each, {})}\n\n`)),
      `data: ${write([{ text: '' }], ending)}\n\n`,
    ].join(''),
    whole: write(spoken.flat(), ending),
  }
}

const written = (part: Part): string => (typeof part === 'string' ? part : JSON.stringify(part))

/** The arguments are spliced in as they are written. */
export const callPart = (id: string, name: string, json: string, more: object = {}): string =>
  JSON.stringify({ functionCall: { id, name, args: 0 }, ...more }).replace('"args":0', () => `"args":${json}`)

export const thoughtPart = (text: string): object => ({ text, thought: true })
