// Shows the progress on stderr: one line that is overwritten on a terminal, otherwise a line for each measurement.
// Colours are for terminals only.
const terminal = process.stderr.isTTY && process.env.TERM !== 'dumb'
const colours = terminal && !process.env.NO_COLOR
const paint = (code, text) => (colours ? `\x1b[${code}m${text}\x1b[0m` : text)

const clock = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`)

export class Progress {
  constructor(total) {
    this.total = total // roughly, in seconds
    this.begun = Date.now()
    this.done = 0
  }

  // Runs one measurement of about `seconds`.
  async during(text, seconds, work) {
    const begun = Date.now()
    const show = () => {
      const spent = (Date.now() - begun) / 1000
      const left = Math.max(0, this.total - this.done - Math.min(spent, seconds))
      process.stderr.write(
        `\r\x1b[K  ${text}  ${paint(2, `${spent.toFixed(0)} of ${seconds} s; about ${clock(left)} to go`)}`
      )
    }
    if (terminal) show()
    const timer = terminal ? setInterval(show, 250) : undefined
    try {
      const figures = await work()
      this.say(
        text,
        figures?.per_second ? `${Math.round(figures.per_second).toLocaleString('en')} ${figures.of ?? ''} a second` : ''
      )
      return figures
    } catch (error) {
      this.say(text, paint(31, `failed: ${error.message.split('\n')[0]}`))
      return { error: error.message.slice(0, 1000) }
    } finally {
      clearInterval(timer)
      this.done += seconds
    }
  }

  say(text, what = '') {
    process.stderr.write(`${terminal ? '\r\x1b[K' : ''}  ${text}${what ? `  ${paint(1, what)}` : ''}\n`)
  }
}
