// Every answer of the conformance suite, in the order of the page.

import { callFixtures } from './calls.ts'
import type { ReplyFixture } from './reply-fixture.ts'
import { speechFixtures } from './speech.ts'

export const replyFixtures: readonly ReplyFixture[] = [...speechFixtures, ...callFixtures]
