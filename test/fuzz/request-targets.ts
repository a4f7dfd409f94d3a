// Requests of the surfaces, from bytes to what would be sent to a provider of each dialect. Whatever the bytes are, they
// are carried or refused as the caller's fault, and a refusal does not repeat what was said in the conversation.

import fc from 'fast-check'
import { anthropicMessages } from '../../src/dialects/anthropic-messages/index.ts'
import type { TargetRules } from '../../src/dialects/canonical/target-rules.ts'
import type { Dialect, UpstreamDialect } from '../../src/dialects/dialect.ts'
import { gemini } from '../../src/dialects/gemini/index.ts'
import { openaiChat } from '../../src/dialects/openai-chat/index.ts'
import { openaiResponses } from '../../src/dialects/openai-responses/index.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { trouble } from './corpus.ts'
import { damaged } from './damage.ts'
import {
  chatRequests,
  embeddingsRequests,
  geminiEmbeddingRequests,
  geminiRequests,
  messagesRequests,
  promptSecret,
} from './requests.ts'
import { type FuzzTarget, insist } from './target.ts'

const targets: readonly UpstreamDialect[] = [openaiChat, anthropicMessages, gemini, openaiResponses]
const rules: TargetRules = { efforts: ['low', 'high'], thinking: ['enabled', 'disabled'], prefill: true }
const headers = new Headers({ 'anthropic-version': '2023-06-01' })
const messageMax = 2_000

function expectRefusal({ status, message, facts }: Failure): void {
  insist(status >= 400 && status < 500, `refused with ${status}: ${message}`)
  insist(!message.includes(promptSecret), `a refusal that repeats the prompt: ${message}`)
  insist(message.length > 0 && message.length < messageMax, `a refusal of ${message.length} characters`)
  insist((facts.param?.length ?? 0) < messageMax, 'a param without an end')
}

function check(surface: Dialect, bytes: Uint8Array<ArrayBuffer>): void {
  const sent = surface.readEnvelope(bytes, headers)
  if (sent instanceof Failure) return expectRefusal(sent)
  const edits = { upstreamModel: 'up', defaultOutputCap: 100, affordableOutputCap: 50, rules }
  const edited: unknown = JSON.parse(new TextDecoder().decode(surface.editRequest(sent, edits).body))
  if (surface === gemini && !sent.envelope.isForeign) {
    const { generationConfig } = edited as { generationConfig: { maxOutputTokens: number } }
    insist(generationConfig.maxOutputTokens <= edits.affordableOutputCap, 'a cap above what is paid for')
  }
  const parsed = surface.translation.parseRequest(sent)
  if (parsed instanceof Failure) return expectRefusal(parsed)
  for (const { id, translation } of targets) {
    const facts = { upstreamModel: 'up', issuer: `acme/${id}/up`, defaultOutputCap: 100, maxOutputTokens: 8000 }
    const rendered = translation.renderRequest(parsed.conversation, { ...facts, rules })
    if (rendered instanceof Failure) expectRefusal(rendered)
    else JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(rendered.body))
  }
}

/** Bodies that ask for vectors. */
function checkEmbeddings({ embeddings }: Dialect, url: string, bytes: Uint8Array<ArrayBuffer>): void {
  if (!embeddings) return
  const sent = embeddings.readEnvelope(bytes, headers, url)
  if (sent instanceof Failure) return expectRefusal(sent)
  const edits = { upstreamModel: 'up', defaultOutputCap: undefined, rules }
  JSON.parse(new TextDecoder().decode(embeddings.editRequest(sent, edits).body))
  const parsed = embeddings.parseRequest(sent)
  if (parsed instanceof Failure) return expectRefusal(parsed)
  for (const { id, embeddings: upstream } of targets) {
    const facts = {
      upstreamModel: 'up',
      issuer: `acme/${id}/up`,
      defaultOutputCap: undefined,
      maxOutputTokens: undefined,
    }
    const rendered = upstream?.renderRequest(parsed, { ...facts, rules })
    if (rendered instanceof Failure) expectRefusal(rendered)
    else if (rendered) JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(rendered.body))
  }
}

function target(
  name: string,
  requests: readonly Uint8Array[],
  checkBody: (bytes: Uint8Array<ArrayBuffer>) => void,
): FuzzTarget {
  return {
    name,
    shareInputs: 800,
    open() {
      const corpus = [...trouble(name), ...requests]
      return {
        property: fc.property(damaged(corpus), checkBody),
        examples: corpus.map((bytes) => [new Uint8Array(bytes)]),
      }
    },
  }
}

export const requestTargets: readonly FuzzTarget[] = [
  target('chat-request', chatRequests, (bytes) => check(openaiChat, bytes)),
  target('messages-request', messagesRequests, (bytes) => check(anthropicMessages, bytes)),
  target('gemini-request', geminiRequests, (bytes) => check(gemini, bytes)),
  target('embeddings-request', embeddingsRequests, (bytes) => checkEmbeddings(openaiChat, '', bytes)),
  target('gemini-embedding-request', geminiEmbeddingRequests, (bytes) => {
    checkEmbeddings(gemini, '/v1beta/models/m:embedContent', bytes)
    checkEmbeddings(gemini, '/v1beta/models/m:batchEmbedContents', bytes)
  }),
]
