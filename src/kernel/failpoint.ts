// Places where a test may stop, break or kill the process, to prove what holds afterwards. A failpoint exists only where
// one was passed in; nothing here reads a setting, and without one nothing happens.

export type FailpointName =
  | 'after_hold'
  | 'after_send'
  | 'after_first_byte'
  | 'mid_stream'
  | 'before_settle'
  | 'after_commit'
  | 'after_terminal'
  | 'in_reap'
  | 'in_topup'

/** Called when the place is reached: may throw, never come back, or answer with a promise that is waited for. */
export type Failpoint = (name: FailpointName) => Promise<void> | undefined

export const noFailpoint: Failpoint = () => undefined
