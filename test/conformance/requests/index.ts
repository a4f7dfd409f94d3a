// Every request of the conformance suite, in the order of the page.

import { conversationFixtures } from './conversation.ts'
import { mediaFixtures } from './media.ts'
import { reasoningFixtures } from './reasoning.ts'
import type { RequestFixture } from './request-fixture.ts'
import { settingFixtures } from './settings.ts'
import { toolChoiceFixtures } from './tool-choice.ts'
import { toolFixtures } from './tools.ts'

export const requestFixtures: ReadonlyMap<string, readonly RequestFixture[]> = new Map([
  ['Conversation', conversationFixtures],
  ['Tools', [...toolFixtures, ...toolChoiceFixtures]],
  ['Media', mediaFixtures],
  ['Reasoning', reasoningFixtures],
  ['Settings', settingFixtures],
])
