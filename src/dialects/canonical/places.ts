// Names for what a rendering refuses or leaves out, in the caller's own words: the place its parser noted, or else the
// name most callers would know it by.

import type { Conversation, Places } from './conversation.ts'

const usual: Required<Places> = {
  system: '/messages',
  outputCap: '/max_tokens',
  stop: '/stop',
  reasoning: '/reasoning_effort',
  outputFormat: '/response_format',
  endUserId: '/user',
  serviceTier: '/service_tier',
  parallelTools: '/parallel_tool_calls',
  automaticCache: '/cache_control',
}

export function placeOf({ places }: Conversation, name: keyof Places): string {
  return places?.[name] ?? usual[name]
}
