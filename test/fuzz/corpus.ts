// The seeds of fuzzing: recorded streams and replies, good requests, and inputs that once caused trouble, which are in
// test/fuzz/corpus/NAME as files, one input each.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { recorded } from '../parts/responses.ts'
import { chatWords, geminiWords, messagesWords, responsesWords, type Words } from '../parts/upstream-words.ts'
import { utf8 } from './damage.ts'

const fixtures = join(import.meta.dir, '../fixtures')

function files(folder: string, ending = ''): Uint8Array[] {
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).filter((name) => name.endsWith(ending))
  return names.sort().map((name) => new Uint8Array(readFileSync(join(folder, name))))
}

/** Inputs that were trouble once. */
export function trouble(target: string): Uint8Array[] {
  return files(join(import.meta.dir, 'corpus', target))
}

const spoken = ({ opening, says, ending, error }: Words): Uint8Array[] =>
  [opening + says('hello') + says(' world') + ending, opening + says('x') + error, ending].map(utf8)

const geminiTools = `data: ${JSON.stringify({
  candidates: [
    {
      content: {
        role: 'model',
        parts: [
          { text: 'hm', thought: true, thoughtSignature: 'c2ln' },
          { text: 'Grüße' },
          { functionCall: { name: 'look', args: { a: [1, { b: null }], __proto__x: 1 }, id: 'f1' } },
        ],
      },
      finishReason: 'STOP',
      index: 0,
    },
  ],
  usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 4, thoughtsTokenCount: 2, cachedContentTokenCount: 3 },
  responseId: 'r2',
})}\n\n`

export const streamCorpus = {
  'openai-chat': [...files(join(fixtures, 'chat'), '.sse'), ...spoken(chatWords)],
  'anthropic-messages': [...files(join(fixtures, 'messages'), '.sse'), ...spoken(messagesWords)],
  gemini: [...spoken(geminiWords), utf8(geminiTools)],
  'openai-responses': [...spoken(responsesWords), utf8(recorded)],
} as const

export const replyCorpus = {
  'openai-chat': [...files(join(fixtures, 'chat'), '.json'), utf8(chatWords.whole)],
  'anthropic-messages': [...files(join(fixtures, 'messages'), '.json'), utf8(messagesWords.whole)],
  gemini: [utf8(geminiWords.whole), utf8(geminiTools.slice('data: '.length))],
  'openai-responses': [utf8(responsesWords.whole)],
} as const
