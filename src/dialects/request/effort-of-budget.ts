// The effort that comes nearest to a budget of thinking tokens, for targets that know only words.

import type { Effort } from '../canonical/conversation.ts'

export function effortOfBudget(tokens: number): Effort {
  if (tokens === 0) return 'none'
  if (tokens <= 2048) return 'low'
  if (tokens <= 8192) return 'medium'
  return tokens <= 20_000 ? 'high' : 'xhigh'
}
