// Who said what, in which order.

import { absent, either, saying, some, texts } from '../shape.ts'
import { hi, type RequestFixture } from './request-fixture.ts'

const userHi = { role: 'user', content: texts('hi') }
const scripts = 'Größe 四 🎉\u2028 '.repeat(60)
const systemRole = either('system', 'developer')
const dialogue = [
  { role: 'user', content: 'one' },
  { role: 'assistant', content: 'two' },
  { role: 'user', content: 'three' },
]
const dialogueArrived = dialogue.map(({ role, content }) => ({ role, content: texts(content) }))

export const conversationFixtures: readonly RequestFixture[] = [
  {
    feature: 'Text',
    chat: { messages: [hi] },
    messages: { messages: [hi] },
    carried: { chat: { messages: [userHi] }, messages: { messages: [userHi] } },
  },
  {
    feature: 'Text in any script',
    chat: { messages: [{ role: 'user', content: scripts }] },
    messages: { messages: [{ role: 'user', content: scripts }] },
    carried: {
      chat: { messages: [{ content: texts(scripts) }] },
      messages: { messages: [{ content: texts(scripts) }] },
    },
  },
  {
    feature: 'System text at the start',
    chat: { messages: [{ role: 'system', content: 'A' }, { role: 'developer', content: 'B' }, hi] },
    messages: {
      system: [
        { type: 'text', text: 'A' },
        { type: 'text', text: 'B' },
      ],
    },
    carried: {
      chat: either(
        { messages: [{ role: systemRole, content: texts('A', 'B') }, userHi] },
        { messages: [{ role: 'system', content: 'A' }, { role: 'developer', content: 'B' }, userHi] },
      ),
      messages: { system: texts('A', 'B'), messages: [userHi] },
    },
  },
  {
    feature: 'System text in mid-conversation',
    chat: { messages: [...dialogue, { role: 'system', content: 'B' }] },
    messages: { messages: [...dialogue, { role: 'system', content: 'B' }] },
    carried: {
      chat: { messages: [...dialogueArrived, { role: systemRole, content: texts('B') }] },
      messages: { messages: [...dialogueArrived, { role: 'system', content: texts('B') }] },
    },
    emulated: {
      chat: {
        messages: [...dialogueArrived.slice(0, 2), { role: 'user', content: saying('three\n\n<system>\nB\n') }],
      },
      messages: {
        system: absent,
        messages: [...dialogueArrived.slice(0, 2), { role: 'user', content: saying('<system_message>\nB\n') }],
      },
    },
  },
  {
    feature: 'Several turns',
    chat: { messages: dialogue },
    messages: { messages: dialogue },
    carried: { chat: { messages: dialogueArrived }, messages: { messages: dialogueArrived } },
  },
  {
    feature: 'Several turns of one role in a row',
    chat: { messages: [hi, { role: 'user', content: 'you there' }] },
    messages: { messages: [hi, { role: 'user', content: 'you there' }] },
    carried: {
      chat: either(
        { messages: [userHi, { role: 'user', content: texts('you there') }] },
        // Templates write parts one behind the other.
        { messages: [{ role: 'user', content: either(texts('hi', 'you there'), texts('hi', '\n\nyou there')) }] },
      ),
      messages: either(
        { messages: [userHi, { role: 'user', content: texts('you there') }] },
        { messages: [{ role: 'user', content: texts('hi', 'you there') }] },
      ),
    },
  },
  {
    feature: 'A prefilled answer',
    chat: { messages: [hi, { role: 'assistant', content: 'Well,' }] },
    messages: { messages: [hi, { role: 'assistant', content: 'Well,' }] },
    carried: {
      chat: { messages: [userHi, { role: 'assistant', content: texts('Well,') }] },
      messages: { messages: [userHi, { role: 'assistant', content: texts('Well,') }] },
    },
  },
  {
    feature: 'A refusal in the history',
    chat: { messages: [hi, { role: 'assistant', content: null, refusal: 'No.' }, { role: 'user', content: 'why' }] },
    carried: {
      chat: { messages: some({ role: 'assistant', refusal: 'No.' }) },
      messages: { messages: some({ role: 'assistant', content: texts('No.') }) },
    },
  },
  {
    feature: 'Names of participants',
    chat: { messages: [{ ...hi, name: 'ann' }] },
    carried: { chat: { messages: [{ ...userHi, name: 'ann' }] }, messages: { messages: [{ ...userHi, name: 'ann' }] } },
  },
  {
    feature: 'Claude Code’s billing line',
    messages: {
      system: [
        { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1' },
        { type: 'text', text: 'A' },
      ],
    },
    carried: {
      // No text for a model, so that leaving it out carries all there is.
      chat: { messages: [{ role: systemRole, content: texts('A') }, userHi] },
      messages: { system: texts('x-anthropic-billing-header: cc_version=2.1', 'A') },
    },
  },
]
