// Every answer of the conformance suite, in the order of the page.

import { callFixtures } from './calls.ts'
import { geminiReplies } from './gemini-replies.ts'
import type { ReplyFixture } from './reply-fixture.ts'
import { responsesReplies } from './responses-replies.ts'
import { speechFixtures } from './speech.ts'

export const replyFixtures: readonly ReplyFixture[] = [...speechFixtures, ...callFixtures].map((fixture) => {
  const gemini = geminiReplies[fixture.feature]
  const responses = responsesReplies[fixture.feature]
  return { ...fixture, ...(gemini && { gemini }), ...(responses && { responses }) }
})
