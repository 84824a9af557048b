--- A poller that uses WSAPoll, on Windows. WSAPoll is poll under another name, so the code is the same.

return require "framewire.poller.poll"
