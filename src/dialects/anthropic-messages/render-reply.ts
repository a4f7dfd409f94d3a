// A whole Messages reply out of canonical events. Says what the stream of the same events says.

import { collectReply, type ReplyEvent } from '../canonical/reply.ts'
import type { RenderContext } from '../canonical/translation.ts'
import { emptyTextBlock, renderBlock } from './render-block.ts'
import { renderMessage } from './render-message.ts'

export function renderReply(events: readonly ReplyEvent[], context: RenderContext): string {
  const { id, blocks, stop, usage: reported } = collectReply(events)
  const usage = reported ?? context.finalUsage(undefined, undefined, () => 0)
  const said = blocks.flatMap((block) => renderBlock(block) ?? [])
  const content = said.length === 0 ? [emptyTextBlock] : said
  return renderMessage({ id, content, stop, usage, cost: context.costOf(usage) }, context)
}
