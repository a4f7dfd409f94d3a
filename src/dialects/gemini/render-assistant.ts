// What the model said and called before, as the parts of one content, each with the proof the provider wants back.

import type { AssistantBlock, RawJson, ToolCallBlock } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { argumentsObject } from '../request/tools.ts'
import { type Rendering, takesIds, thinksByLevel } from './rendering.ts'
import { signatureOf } from './restore-thinking.ts'

/** Google's own word for a signature that is lost; without any, a call in the history is refused (docs of 2026-11). */
const lostSignature = 'skip_thought_signature_validator'

export function renderAssistant(blocks: readonly AssistantBlock[], rendering: Rendering, place: string): RawJson[] {
  // Of calls made at once, only the first is signed.
  const first = blocks.find(({ kind }) => kind === 'tool-call')
  return blocks.flatMap((block) => {
    switch (block.kind) {
      case 'tool-call': {
        const signature = signatureOf(block)
        if (signature !== undefined || block !== first || !thinksByLevel(rendering.rules)) {
          return [renderCall(block, signature, rendering, place)]
        }
        // The call is accepted, but the model no longer sees the reasoning behind it.
        rendering.warnings.add('thought_signature_skipped', place)
        return [renderCall(block, lostSignature, rendering, place)]
      }
      case 'thinking':
        return [part([['text', jsonString(block.text)], ['thought', 'true'], signatureMember(block.signature)])]
      case 'sealed-thinking':
        return []
      default:
        if (block.text === '') return []
        return [part([['text', jsonString(block.text)], signatureMember(signatureOf(block))])]
    }
  })
}

function renderCall(
  call: ToolCallBlock,
  signature: string | undefined,
  { rules, names, warnings }: Rendering,
  place: string,
): RawJson {
  const args = call.custom ? jsonObject([['input', jsonString(call.arguments)]]) : argumentsObject(call.arguments)
  if (!call.custom && args.startsWith('{"raw_arguments":') && args !== call.arguments.trim()) {
    warnings.add('invalid_arguments_wrapped', place)
  }
  const called = jsonObject([
    ['id', takesIds(rules) ? jsonString(call.id) : undefined],
    ['name', jsonString(names.sent(call.name))],
    ['args', args],
  ])
  return part([['functionCall', called], signatureMember(signature)])
}

type Member = readonly [name: string, value: RawJson | undefined]

function part(members: readonly Member[]): RawJson {
  return jsonObject(members)
}

function signatureMember(signature: string | undefined): Member {
  return ['thoughtSignature', signature === undefined ? undefined : jsonString(signature)]
}
