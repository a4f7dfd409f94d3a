// Recorded streams of real providers break no rule of their dialect, though they may break rules of our own; so another
// endpoint is not blamed for what official clients accept.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type SseEvent, SseReader } from '../../src/wire/sse.ts'
import { checkChatReply, checkChatStream } from './checker/grammar-chat.ts'
import { checkMessagesReply, checkMessagesStream } from './checker/grammar-messages.ts'

const fixture = (path: string): Uint8Array => readFileSync(`${import.meta.dir}/../fixtures/${path}`)
const eventsOf = (path: string): SseEvent[] => {
  const reader = new SseReader()
  return [...reader.push(fixture(path)), ...reader.end()]
}
const jsonOf = (path: string): unknown => JSON.parse(new TextDecoder().decode(fixture(path)))

describe('recordings of chat completions', () => {
  test.each(['azure', 'deepseek', 'openai-text', 'openai-tools', 'openrouter'])('%s', (name) => {
    const events = eventsOf(`chat/${name}.sse`)
    const wantsUsage = events.some(({ data }) => data.includes('"prompt_tokens"'))
    expect(checkChatStream(events, { wantsUsage, level: 'dialect' })).toEqual([])
    expect(checkChatStream(events, { wantsUsage, level: 'own' })).not.toEqual([])
  })

  test.each(['whole', 'whole-tools'])('%s', (name) => {
    expect(checkChatReply(jsonOf(`chat/${name}.json`), 'dialect')).toEqual([])
  })
})

describe('recordings of messages', () => {
  test.each(['late-cache-counts', 'server-tools', 'thinking', 'tools'])('%s', (name) => {
    const events = eventsOf(`messages/${name}.sse`)
    expect(checkMessagesStream(events, 'dialect')).toEqual([])
    expect(checkMessagesStream(events, 'own')).not.toEqual([])
  })

  test('whole', () => {
    expect(checkMessagesReply(jsonOf('messages/whole.json'), 'dialect')).toEqual([])
  })
})
